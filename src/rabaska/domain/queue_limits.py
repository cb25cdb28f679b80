"""What the queues of a cluster grant, held against one request; and what to write instead."""

from collections.abc import Set as AbstractSet
from datetime import timedelta
from math import prod

from rabaska.domain.amounts import write_duration
from rabaska.domain.clusters import Cluster, Partition
from rabaska.domain.jobs import Resources
from rabaska.domain.projects import Project

_NOTHING: frozenset[str] = frozenset()
_CORES = 4  # of a job without GPUs
_GB = 10**9
_LEAST_MEMORY, _MOST_MEMORY = 4 * _GB, 16 * _GB  # of a job without GPUs
_OF_NODE = 0.95  # of its memory: the system keeps some
_OPTIONS = ("walltime", "memory", "gpus", "cores", "queue", "account", "jobs")


def open_queues(cluster: Cluster) -> list[Partition]:
    """Those that anybody may use today."""
    return [queue for queue in cluster.partitions if not (queue.on_request or queue.closed)]


def fits(resources: Resources, queue: Partition, ignored: AbstractSet[str] = _NOTHING) -> bool:
    """Whether the queue grants all of it but what is `ignored`."""
    return not exceeded(resources, queue) - ignored


def exceeded(resources: Resources, queue: Partition) -> set[str]:
    """The keys of a request that the queue does not grant."""
    cores = (resources.cores or 0) * resources.tasks
    too_much = {
        "walltime": bool(queue.walltime) and resources.walltime > (queue.walltime or timedelta(0)),
        "gpus": not _grants_gpus(resources, queue),
        "cores": bool(queue.cores) and cores > queue.cores,
        "memory": bool(queue.memory) and (resources.memory or 0) > queue.memory,
        "nodes": any(0 < most < resources.nodes for most in (queue.most_nodes, queue.nodes)),
    }
    return {key for key, is_so in too_much.items() if is_so}


def _grants_gpus(resources: Resources, queue: Partition) -> bool:
    if not queue.takes(resources.gpus) or resources.gpus > queue.gpus:
        return False
    if resources.gpus and resources.gpu_model not in ("", queue.gpu_model, queue.kind):
        return False
    return not (resources.gpus and queue.gpu_counts) or resources.gpus in queue.gpu_counts


def other_queue(project: Project, cluster: Cluster) -> Partition | None:
    """The queue that grants the whole request, with the shortest limit among those that do."""
    fitting = [queue for queue in open_queues(cluster) if fits(project.resources, queue)]
    endless = timedelta(days=10_000)
    return min(fitting, key=lambda queue: queue.walltime or endless, default=None)


def closest_queue(project: Project, cluster: Cluster) -> Partition | None:
    """Where no queue grants the request: the one that grants most of what was asked.

    A chain makes up for a short limit, so that the rest counts more where the program resumes.
    """

    def order(queue: Partition) -> tuple[float, ...]:
        parts = granted_parts(project.resources, queue)
        time = parts.pop("walltime")
        rest = prod(parts.values())
        return (-rest, -time) if project.continues else (-rest * time,)

    return min(open_queues(cluster), key=order, default=None)


def granted_parts(resources: Resources, queue: Partition) -> dict[str, float]:
    """Of each thing that is asked, the part that the queue grants: 1 all of it, 0 none."""
    limit = queue.walltime or resources.walltime
    pairs = {
        "walltime": (resources.walltime.total_seconds(), limit.total_seconds()),
        "cores": ((resources.cores or 0) * resources.tasks, queue.cores),
        "memory": (resources.memory or 0, queue.memory),
        "nodes": (resources.nodes, queue.most_nodes or queue.nodes),
    }
    parts = {
        key: min(has / asked, 1.0) if asked and has else 1.0 for key, (asked, has) in pairs.items()
    }
    return {**parts, "gpus": _granted_gpus(resources, queue)}


def _granted_gpus(resources: Resources, queue: Partition) -> float:
    if not queue.takes(resources.gpus):
        return 0.0
    if resources.gpus and resources.gpu_model not in ("", queue.gpu_model, queue.kind):
        return 0.0
    return min(queue.gpus / resources.gpus, 1.0) if resources.gpus else 1.0


def queue_line(project: Project, cluster: Cluster) -> str:
    """What to write to use a queue that grants the whole request; "" where there is none."""
    queue = other_queue(project, cluster)
    if queue is None:
        return ""
    if cluster.names_queue and queue.called:
        return cluster_line("queue", queue.called, project, cluster.name)
    model = queue.gpu_model if project.resources.gpus else ""
    return line("gpu_model", model, project) if model else ""


def line(key: str, value: str | int | timedelta, project: Project) -> str:
    """What to write to set a key: in the table where it stands already, or the option."""
    place = project.written_in.get(key)
    written = write_duration(value) if isinstance(value, timedelta) else str(value)
    if place == "" and key in _OPTIONS:
        return f"`--{key} {written.replace(' ', '')}`"
    usual = "[chain]" if key == "jobs" else "[resources]"
    shown = written if isinstance(value, int) else f'"{written}"'
    return f"`{key} = {shown}` under {place or usual}"


def cluster_line(key: str, value: str, project: Project, cluster: str) -> str:
    """The same for a key of the cluster's own table."""
    if project.written_in.get(key) == "":
        return f"`--{key} {value}`"
    return f'`{key} = "{value}"` under [cluster.{cluster}]'


def write_size(most: int) -> str:
    """A size as it is written in rabaska.toml, rounded down."""
    return f"{most // 10**9} GB" if most >= 10**10 else f"{most // 10**6} MB"


def share_of_cores(queue: Partition, gpus: int = 0, tasks: int = 1) -> int:
    """The cores of a node that go with so many GPUs; few where there are none."""
    if not gpus:
        return min(max(_CORES, tasks), queue.cores)
    of_gpus = (queue.cores_per_gpu or queue.cores // max(queue.gpus, 1)) * gpus
    return min(of_gpus, queue.cores) if queue.cores else of_gpus


def share_of_memory(queue: Partition, gpus: int = 0) -> int:
    """The memory that goes with them, in whole GB; 0 where it is not known what a node has."""
    if gpus and queue.memory_per_gpu:
        share = queue.memory_per_gpu * gpus
        return min(share, queue.memory or share)
    usable = int(queue.memory * _OF_NODE)
    if gpus:
        return _whole(usable * gpus // max(queue.gpus, gpus))
    of_cores = usable * share_of_cores(queue) // queue.cores if queue.cores else usable
    return _whole(min(max(of_cores, _LEAST_MEMORY), _MOST_MEMORY, usable))


def _whole(size: int) -> int:
    return size // _GB * _GB or size
