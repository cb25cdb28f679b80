"""What a later submission of a run requests otherwise, and in what two plans differ."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import TypedDict, Unpack

from rabaska.domain import amounts
from rabaska.domain.arguments import changed_words
from rabaska.domain.jobs import Resources
from rabaska.errors import WrongUse
from rabaska.node.record.plan import Plan

_NONE = "none"


@dataclass(frozen=True)
class Changes:
    """None and "" keep what the run had."""

    walltime: timedelta | None = None
    memory: int | None = None  # bytes per node
    gpus: int | None = None
    cores: int | None = None
    queue: str = ""
    account: str = ""

    def __bool__(self) -> bool:
        return self != Changes()

    @property
    def given(self) -> frozenset[str]:
        """The names of those that change something."""
        return frozenset(name for name, value in asdict(self).items() if value not in (None, ""))

    def applied(self, resources: Resources, *, launch: str) -> Resources:
        """The same with these values; who starts a process for each GPU still does."""
        given = {
            name: getattr(self, name)
            for name in ("walltime", "memory", "gpus", "cores")
            if name in self.given
        }
        changed = replace(resources, **given)
        if launch != "program" and self.gpus and resources.tasks == max(1, resources.gpus):
            changed = replace(changed, tasks=self.gpus)
        return changed if changed.gpus else replace(changed, gpu_model="")


class TypedChanges(TypedDict, total=False):
    """Changes as somebody types them: `walltime="3h"`, `memory="6GB"`; None keeps what was."""

    walltime: str | None
    memory: str | None
    gpus: int | None
    cores: int | None
    queue: str | None
    account: str | None


_SETTINGS = {  # keys of rabaska.toml
    "walltime": "resources.walltime",
    "memory": "resources.memory",
    "gpus": "resources.gpus",
    "cores": "resources.cores",
    "queue": "queue",
    "account": "account",
}


def as_settings(**typed: Unpack[TypedChanges]) -> dict[str, object]:
    """The same as values of rabaska.toml, which checks them itself."""
    return {_SETTINGS[name]: value for name, value in typed.items()}


def read_changes(**typed: Unpack[TypedChanges]) -> Changes:
    """WrongUse for what is no time or size."""
    walltime, memory = typed.get("walltime"), typed.get("memory")
    try:
        limit = amounts.duration(walltime) if walltime else None
        room = amounts.size(memory) if memory else None
    except ValueError as problem:
        raise WrongUse(str(problem)) from None
    if limit is not None and limit <= timedelta(0):
        raise WrongUse("a job needs a time limit above zero", hint="such as `--walltime 3h`")
    queue, account = typed.get("queue") or "", typed.get("account") or ""
    return Changes(limit, room, typed.get("gpus"), typed.get("cores"), queue, account)


@dataclass(frozen=True)
class Difference:
    """One thing in which a run differs from another one."""

    what: str
    before: str
    after: str


def differences(before: Plan, after: Plan) -> list[Difference]:
    """In the order in which people ask: where, what, with what, how much."""
    pairs = [
        ("cluster", before.origin.cluster, after.origin.cluster),
        ("arguments", *changed_words(_words(before), _words(after))),
        ("code", before.code[:12], after.code[:12]),
        ("commit", _commit(before), _commit(after)),
        ("data", _data(before), _data(after)),
        *_requests(before, after),
        ("environment", *_setup(before.request.setup, after.request.setup)),
        ("jobs", str(before.jobs), str(after.jobs)),
    ]
    return [Difference(what, old or _NONE, new or _NONE) for what, old, new in pairs if old != new]


def _words(plan: Plan) -> list[str]:
    return [*plan.command, *plan.resume]


def _commit(plan: Plan) -> str:
    origin = plan.origin
    return f"{origin.commit[:12]}{f' ({origin.tree})' if origin.tree else ''}"


def _data(plan: Plan) -> str:
    return ", ".join(f"{dataset.pack} as {dataset.mode}" for dataset in plan.datasets)


def _setup(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    """The first line of each that the other has not."""
    old, new = (
        next((line for line in one if line not in other), "")
        for one, other in ((before, after), (after, before))
    )
    return old, new


def _requests(before: Plan, after: Plan) -> Iterator[tuple[str, str, str]]:
    for what, old in requested(before).items():
        yield what, old, requested(after)[what]


def requested(plan: Plan) -> dict[str, str]:
    """What each job requests, in words; "" leaves the choice to the cluster."""
    request, resources = plan.request, plan.request.resources
    return {
        "walltime": amounts.say_duration(timedelta(seconds=resources.walltime)),
        "GPUs": f"{resources.gpus} {resources.gpu_model}".strip(),
        "nodes": str(resources.nodes),
        "processes per node": str(resources.tasks),
        "cores": "" if resources.cores is None else str(resources.cores),
        "memory": "" if resources.memory is None else amounts.say_size(resources.memory),
        "queue": request.queue,
        "account": request.account,
        "native": " ".join(request.native),
    }


OPTIONS = {  # of `resume` and `rerun`, by the words of `requested`
    "walltime": "--walltime",
    "GPUs": "--gpus",
    "cores": "--cores",
    "memory": "--memory",
    "queue": "--queue",
    "account": "--account",
}


def option_for(difference: Difference) -> str:
    """The option that gives a run the other value; "" where there is none."""
    option = OPTIONS.get(difference.what, "")
    value = difference.after.partition(" ")[0] if difference.what == "GPUs" else difference.after
    value = re.sub(r"(?<=\d) (?=[A-Za-z])", "", value)
    return f"{option} {value}" if option and value != _NONE and " " not in value else ""
