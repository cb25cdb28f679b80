"""A cluster as it showed itself: its scheduler, queues, storage and software."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rabaska.domain import untrusted
from rabaska.domain.clusters import NodeDisk, Partition, SiteScheduler
from rabaska.sites.questions import NO_ANSWER, NODES_NAME, QUOTA_PROGRAMS, SiteAnswer, pairs

_OLDEST = (3, 6)  # the Python that our own part needs there
_PLAIN = re.compile(r"[\w./:@+-]{1,200}")
_DISKS = {str: {"size": untrusted.SIZE, "path": _PLAIN, "host": _PLAIN}}  # see `note_disk`


@dataclass(frozen=True)
class Site:
    scheduler: str = "local"
    version: str = ""  # of the scheduler, as it says it itself
    partitions: tuple[Partition, ...] = ()
    accounts: tuple[str, ...] | None = None  # None: nobody could say
    limits: Mapping[str, str] = field(default_factory=dict)
    local_variables: tuple[str, ...] = ()  # that may name a job's own space on its node
    variables: Mapping[str, str] = field(default_factory=dict)
    in_job: Mapping[str, str] = field(default_factory=dict)  # variables on a compute node
    internet: bool | None = None  # on compute nodes
    pythons: Mapping[str, str] = field(default_factory=dict)  # command → version
    modules: tuple[str, ...] | None = None
    wheelhouse: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    @property
    def python(self) -> str:
        """The plainest name of a Python that can run our part; "" when there is none."""
        able = [name for name, version in self.pythons.items() if _numbers(version) >= _OLDEST]
        return able[0] if able else ""

    @property
    def quota(self) -> str:
        return next((name for name in QUOTA_PROGRAMS if name in self.programs), "")

    @property
    def default_partition(self) -> Partition | None:
        return next((each for each in self.partitions if each.default), None)


def answered(answers: Mapping[str, SiteAnswer], name: str) -> str:
    """The answer to a question; "" where it failed or was not asked."""
    answer = answers.get(name, NO_ANSWER)
    return answer.text if answer.ok else ""


def read(answers: Mapping[str, SiteAnswer], scheduler: SiteScheduler) -> Site:
    """Every answer that came makes the picture more complete; none must come."""

    def text(name: str) -> str:
        return answered(answers, name)

    programs = tuple(text("programs").split())
    probed = pairs(text("probe"))
    tried = {"yes": True, "no": False}.get(probed.pop("internet", ""))
    return Site(
        scheduler=scheduler.name,
        version=scheduler.version,
        partitions=scheduler.partitions,
        accounts=scheduler.accounts,
        limits=scheduler.limits,
        local_variables=scheduler.local_variables,
        variables=pairs(text("variables")),
        in_job=probed,
        internet=internet(text(NODES_NAME)) if tried is None else tried,
        pythons=pythons(text("pythons")),
        modules=modules(text("modules")) if answers.get("modules", NO_ANSWER).ok else None,
        wheelhouse=wheelhouse(text("wheelhouse")),
        programs=programs,
    )


def internet(text: str) -> bool | None:
    """What a job that tried it wrote down; None when none has, or nobody can read it."""
    try:
        found = json.loads(text)["internet"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return found if isinstance(found, bool) else None


def disks(text: str) -> dict[str, NodeDisk]:
    """The nodes' own disks by queue, as jobs wrote them down; none where nobody can read it."""
    try:
        found = untrusted.read(text, _DISKS)
    except untrusted.Unexpected:
        return {}
    return {
        queue: NodeDisk(told["size"], told["path"], told["host"]) for queue, told in found.items()
    }


def pythons(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(python[\d.]*) Python (\d+(?:\.\d+)+)\S*$", text, re.MULTILINE))


def modules(text: str) -> tuple[str, ...]:
    """Names only: headings end with a colon, marks such as `(default)` are dropped."""
    found = []
    for line in text.splitlines():
        word = re.sub(r"[(<@].*$", "", line).strip()
        if word and not line.strip().endswith((":", "/")) and re.fullmatch(r"[\w.+/-]+", word):
            found.append(word)
    return tuple(dict.fromkeys(found))


def wheelhouse(text: str) -> tuple[str, ...]:
    """The folders that the site told its pip to look in."""
    found = re.findall(r"^[\w:.]*find-links='(.*)'$", text, re.MULTILINE)
    words = " ".join(found).replace("\\n", " ").split()
    return tuple(dict.fromkeys(word.removeprefix("file://") for word in words if "/" in word))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:2])
