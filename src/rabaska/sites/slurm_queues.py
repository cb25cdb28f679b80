"""What `sinfo` says of Slurm's partitions; and what the readers of all queues share."""

import re
from dataclasses import replace
from datetime import timedelta

from rabaska.domain.clusters import Partition

_LONGEST = timedelta(days=366)  # more is no limit that anybody meets
_CLOSED = {
    "down": "it starts no jobs: its state is down",
    "drain": "it takes no jobs: its state is drain",
    "inact": "it takes and starts no jobs: its state is inactive",
}


def partitions(text: str) -> tuple[Partition, ...]:
    """From `sinfo`, which gives a line for each kind of node: the largest kind counts."""
    found: dict[str, Partition] = {}
    for line in text.splitlines():
        parts = line.strip().split("|")
        if len(parts) != 8 or parts[7] != "." or not parts[0].strip("*"):
            continue
        one = _partition(*parts[:7])
        found[one.name] = together(found[one.name], one) if one.name in found else one
    return tuple(found.values())


def _partition(
    name: str, limit: str, nodes: str, cores: str, memory: str, gres: str, state: str
) -> Partition:
    gpus, model = gpus_of(gres)
    return Partition(
        name=name.rstrip("*"),
        walltime=walltime(limit),
        nodes=count(nodes),
        cores=count(cores),
        memory=count(memory) * 2**20,  # Slurm counts megabytes of 1024 x 1024
        gpus=gpus,
        gpu_model=model,
        default=name.endswith("*"),
        closed=_CLOSED.get(state.strip(), ""),
    )


def together(one: Partition, other: Partition) -> Partition:
    """One queue with two kinds of node: as large as the larger."""
    better = max(one, other, key=lambda each: each.gpus)
    return replace(
        one,
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


def count(text: str) -> int:
    found = re.match(r"\d{1,12}", text.strip())  # "24+": there are larger ones
    return int(found[0]) if found else 0
