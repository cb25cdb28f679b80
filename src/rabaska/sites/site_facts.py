"""A cluster as it showed itself: its scheduler, queues, storage and software."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rabaska.domain.clusters import Partition
from rabaska.sites import pbs_queues, sge_queues, slurm_queues
from rabaska.sites.questions import NO_ANSWER, NODES_NAME, QUOTA_PROGRAMS, SiteAnswer, pairs

_OLDEST = (3, 6)  # the Python that our own part needs there


@dataclass(frozen=True)
class Site:
    scheduler: str = "local"
    version: str = ""  # of the scheduler, as it says it itself
    partitions: tuple[Partition, ...] = ()
    accounts: tuple[str, ...] | None = None  # None: nobody could say
    limits: Mapping[str, str] = field(default_factory=dict)
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


def read(answers: Mapping[str, SiteAnswer]) -> Site:
    """Every answer that came makes the picture more complete; none must come."""

    def text(name: str) -> str:
        answer = answers.get(name, NO_ANSWER)
        return answer.text if answer.ok else ""

    programs = tuple(text("programs").split())
    schedulers = text("schedulers")
    kind, partitions = queues(text)
    probed = pairs(text("probe"))
    tried = {"yes": True, "no": False}.get(probed.pop("internet", ""))
    return Site(
        scheduler=kind or scheduler(programs, schedulers),
        version=_version(schedulers),
        partitions=partitions,
        accounts=accounts(text("accounts")) or None,
        limits=limits(text("config")),
        variables=pairs(text("variables")),
        in_job=probed,
        internet=internet(text(NODES_NAME)) if tried is None else tried,
        pythons=pythons(text("pythons")),
        modules=modules(text("modules")) if answers.get("modules", NO_ANSWER).ok else None,
        wheelhouse=wheelhouse(text("wheelhouse")),
        programs=programs,
    )


def queues(text: Callable[[str], str]) -> tuple[str, tuple[Partition, ...]]:
    """The queues, and whose they are where that is clear; no commands are there of the others.

    Programs that are installed and serve nothing prove nothing: the one that answers is meant.
    """
    of_slurm = slurm_queues.partitions(text("partitions"))
    of_grid = sge_queues.partitions(text("grid_queues"), text("grid_hosts"))
    of_pbs = pbs_queues.partitions(text("queues"), text("hosts"), text("server"))
    if of_slurm or of_grid:
        return ("slurm", of_slurm) if of_slurm else ("sge", of_grid)
    programs = {*text("programs").split()} - {"sbatch", "qconf"} if of_pbs else set()
    return scheduler(programs, text("schedulers")) if programs else "", of_pbs


def scheduler(programs: Iterable[str], said: str) -> str:
    """By the programs that submit; Torque, PBS and Grid Engine all call theirs qsub."""
    found = set(programs)
    if "sbatch" in found:
        return "slurm"
    if "sqsub" in found:
        return "sqsub"
    if "msub" in found:
        return "moab"
    if "qconf" in found or re.search(r"^SGE_ROOT=\S", said, re.MULTILINE):
        return "sge"
    if "qsub" not in found:
        return "local"
    return "pbs" if re.search(r"pbs_version|PBSPro|OpenPBS", said, re.IGNORECASE) else "torque"


def internet(text: str) -> bool | None:
    """What a job that tried it wrote down; None when none has, or nobody can read it."""
    try:
        found = json.loads(text)["internet"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return found if isinstance(found, bool) else None


def _version(said: str) -> str:
    found = re.search(
        r"slurm(?:-wlm)? \d\S*|pbs_version = \S+|Version: \S+|^(?:SGE|UGE|OGS/GE) \S+",
        said,
        re.IGNORECASE | re.MULTILINE,
    )
    return found[0] if found else ""


def accounts(text: str) -> tuple[str, ...]:
    """One for each association; the same account comes back for each of its partitions."""
    words = (line.strip().split("|")[0] for line in text.splitlines())
    return tuple(dict.fromkeys(word for word in words if re.fullmatch(r"[\w.@+-]+", word)))


_LIMITS = ("MaxArraySize", "MaxJobCount", "KillWait", "EnforcePartLimits", "PreemptMode")


def limits(text: str) -> dict[str, str]:
    found = dict(re.findall(r"^(\w+)\s*=\s*(.*?)\s*$", text, re.MULTILINE))
    return {name: found[name] for name in _LIMITS if name in found}


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
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
