"""A cluster as it showed itself: its scheduler, queues, storage and software."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from rabaska.domain.clusters import Partition
from rabaska.scouting.questions import NO_ANSWER, NODES_NAME, QUOTA_PROGRAMS, Answer, pairs

_LONGEST = timedelta(days=366)  # more is no limit that anybody meets
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


def read(answers: Mapping[str, Answer]) -> Site:
    """Every answer that came makes the picture more complete; none must come."""

    def text(name: str) -> str:
        answer = answers.get(name, NO_ANSWER)
        return answer.text if answer.ok else ""

    programs = tuple(text("programs").split())
    schedulers = text("schedulers")
    probed = pairs(text("probe"))
    tried = {"yes": True, "no": False}.get(probed.pop("internet", ""))
    return Site(
        scheduler=scheduler(programs, schedulers),
        version=_version(schedulers),
        partitions=partitions(text("partitions")),
        accounts=accounts(text("accounts")) if answers.get("accounts", NO_ANSWER).ok else None,
        limits=limits(text("config")),
        variables=pairs(text("variables")),
        in_job=probed,
        internet=internet(text(NODES_NAME)) if tried is None else tried,
        pythons=pythons(text("pythons")),
        modules=modules(text("modules")) if answers.get("modules", NO_ANSWER).ok else None,
        wheelhouse=wheelhouse(text("wheelhouse")),
        programs=programs,
    )


def scheduler(programs: Iterable[str], said: str) -> str:
    """By the programs that submit; Torque, PBS and Grid Engine all call theirs qsub."""
    found = set(programs)
    if "sbatch" in found:
        return "slurm"
    if "sqsub" in found:
        return "sqsub"
    if "qconf" in found or re.search(r"^SGE_ROOT=\S", said, re.MULTILINE):
        return "sge"
    if "qsub" not in found:
        return "local"
    return "pbs" if re.search(r"pbs_version|PBSPro|OpenPBS", said, re.IGNORECASE) else "torque"


def internet(text: str) -> bool | None:
    """What a link that tried it wrote down; None when none has, or nobody can read it."""
    try:
        found = json.loads(text)["internet"]
    except (ValueError, TypeError, KeyError):
        return None
    return found if isinstance(found, bool) else None


def _version(said: str) -> str:
    found = re.search(r"slurm(?:-wlm)? \S+|pbs_version = \S+|Version: \S+", said, re.IGNORECASE)
    return found[0] if found else ""


def partitions(text: str) -> tuple[Partition, ...]:
    """From `sinfo`, which gives a line for each kind of node: the largest kind counts."""
    found: dict[str, Partition] = {}
    for line in text.splitlines():
        parts = line.strip().split("|")
        if len(parts) != 7 or parts[6] != "." or not parts[0].strip("*"):
            continue
        one = _partition(*parts[:6])
        found[one.name] = _together(found[one.name], one) if one.name in found else one
    return tuple(found.values())


def _partition(name: str, limit: str, nodes: str, cores: str, memory: str, gres: str) -> Partition:
    gpus, model = gpus_of(gres)
    return Partition(
        name=name.rstrip("*"),
        walltime=walltime(limit),
        nodes=_count(nodes),
        cores=_count(cores),
        memory=_count(memory) * 2**20,  # Slurm counts megabytes of 1024 x 1024
        gpus=gpus,
        gpu_model=model,
        default=name.endswith("*"),
    )


def _together(one: Partition, other: Partition) -> Partition:
    better = max(one, other, key=lambda each: each.gpus)
    return Partition(
        name=one.name,
        walltime=one.walltime,
        nodes=one.nodes + other.nodes,
        cores=max(one.cores, other.cores),
        memory=max(one.memory, other.memory),
        gpus=better.gpus,
        gpu_model=better.gpu_model,
        default=one.default or other.default,
    )


def walltime(text: str) -> timedelta | None:
    """`D-HH:MM:SS`, `HH:MM:SS` or `MM:SS`; None for `infinite` and what nobody foresaw."""
    found = re.fullmatch(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d{1,6})", text.strip())
    if not found:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    return span if timedelta(0) < span <= _LONGEST else None


def gpus_of(gres: str) -> tuple[int, str]:
    """`gpu:v100:4(S:0-1)` → 4 of v100; of several kinds the most numerous."""
    kinds = re.findall(r"(?:^|,)gpu(?::([A-Za-z][\w.-]*))?:(\d{1,6})", gres)
    counted = [(int(count), model) for model, count in kinds]
    return max(counted, default=(0, ""))


def _count(text: str) -> int:
    found = re.match(r"\d{1,12}", text.strip())  # "24+": there are larger ones
    return int(found[0]) if found else 0


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
