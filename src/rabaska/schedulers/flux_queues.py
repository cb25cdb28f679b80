"""What `flux queue list` and `flux resource list` say of Flux's queues and nodes."""

import re
from datetime import timedelta

from rabaska.domain.clusters import Partition
from rabaska.schedulers.protocol import Answer

VERSION_COMMAND = "flux version | sed -n 's/^libflux-core:[[:space:]]*/flux-core /p'"
QUESTIONS = {
    "flux_queues": "flux queue list --no-header --format="
    "'flux|{queue}|{queuem}|{enabled}|{started}|{limits.timelimit}|{limits.range.nnodes}|.'",
    "flux_nodes": "flux resource list --states=all --no-header --format="
    "'flux|{queue}|{nnodes}|{ncores}|{ngpus}|.'",
}
_LONGEST = timedelta(days=366)  # more is no limit that anybody meets
_ONLY = "all"  # what we call the one queue of a site that has none: its jobs name it not
_QUEUE = re.compile(
    r"flux\|(?P<name>[^|]*)\|(?P<marked>[^|]*)\|(?P<enabled>[^|]*)\|(?P<started>[^|]*)"
    r"\|(?P<limit>[^|]*)\|\d+-(?P<nodes>[^|]*)\|\."
)
_NODES = re.compile(r"flux\|([^|]*)\|(\d{1,9})\|(\d{1,9})\|(\d{1,9})\|\.", re.ASCII)


def of_site(answer: Answer) -> tuple[Partition, ...]:
    return partitions(answer("flux_queues"), answer("flux_nodes"))


def partitions(queues: str, nodes: str) -> tuple[Partition, ...]:
    """Flux counts cores and GPUs of all nodes together: their mean is told, rounded up."""
    lines = [found for line in queues.splitlines() if (found := _QUEUE.fullmatch(line.strip()))]
    serving = [found.groups() for line in nodes.splitlines() if (found := _NODES.fullmatch(line))]
    told = {}
    for line in lines:
        name = line["name"]
        mine = [each[1:] for each in serving if not name or name in each[0].split(",")]
        count, cores, gpus = (sum(int(each[column]) for each in mine) for column in range(3))
        told[name] = Partition(
            name or _ONLY,
            walltime=_limit(line["limit"]),
            nodes=count,
            cores=-(-cores // count) if count else 0,
            gpus=-(-gpus // count) if count else 0,
            without_gpus=gpus > 0,
            default=line["marked"].endswith("*") or not name,
            most_nodes=int(line["nodes"]) if re.fullmatch(r"\d{1,9}", line["nodes"]) else 0,
            queue=None if name else "",
            closed=_closed(line["enabled"], line["started"]),
        )
    return tuple(told.values())


def _limit(seconds: str) -> timedelta | None:
    """`7200.0`, or `inf`."""
    if not re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", seconds, re.ASCII):
        return None
    span = timedelta(seconds=float(seconds))
    return span if timedelta(0) < span <= _LONGEST else None


def _closed(enabled: str, started: str) -> str:
    """A tick or a cross, or `y` and `n` for terminals that have neither."""
    if enabled in ("✗", "n"):
        return "it takes no jobs: submission is disabled"
    return "it starts no jobs: it is stopped" if started in ("✗", "n") else ""
