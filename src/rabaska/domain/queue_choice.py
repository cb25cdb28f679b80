"""Which queue to use and what to ask of it: every choice with its reason, every rejection too."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from rabaska.domain.amounts import say_count, say_duration, say_size
from rabaska.domain.clusters import Cluster, Partition
from rabaska.domain.gpus import Gpu, parsed
from rabaska.domain.queue_limits import share_of_cores, share_of_memory

_SPARE = 1.1  # of the time that training takes: staging, saving, a slower node
_DAY = timedelta(days=1)
_MOST_JOBS = 1000


@dataclass(frozen=True)
class Need:
    """What a training asks of any cluster."""

    total: timedelta  # from the first step to the last
    gpus: int = 1  # in all
    gpu: str = ""  # a kind, where only that will do
    resumes: bool = True  # from a checkpoint, so that a chain is possible
    spreads: bool = False  # runs on several nodes
    cores: int = 0  # per GPU, where more or fewer are wanted than go with one
    memory: int = 0  # bytes in all, where that is known
    unfit: Mapping[str, str] = field(default_factory=dict)  # GPUs its software does not run on
    stretch: timedelta = timedelta(0)  # from one save to the next, where that was measured


@dataclass(frozen=True)
class Choice:
    """What to ask for in one queue, and why."""

    queue: str  # the name of its table in the profile
    gpu: str
    nodes: int
    gpus: int  # per node
    jobs: int
    walltime: timedelta
    cores: int  # per node; 0: as the site gives
    memory: int  # bytes per node; 0: as the site gives
    gpu_hours: float
    core_hours: float = 0.0  # of a job without GPUs
    unit_hours: float = 0.0  # in the Alliance's reference units, where they are known
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rejection:
    queue: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Outlook:
    """A cluster seen from one need: the choice, the runners-up, and what cannot be."""

    cluster: str
    choice: Choice | None
    others: tuple[Choice, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    nearest: str = ""  # what this cluster could do instead, when there is no choice


def outlook(need: Need, cluster: Cluster, gpus: Mapping[str, Gpu]) -> Outlook:
    """The queues of `cluster` in the order in which they should be tried."""
    rejected, fitting = [], []
    for queue in cluster.partitions:
        broken = broken_rules(need, queue, cluster)
        if broken:
            rejected.append(Rejection(queue.name, tuple(broken)))
        else:
            fitting.append((_rank(need, queue, cluster, gpus), queue))
    fitting.sort(key=lambda ranked: ranked[0])
    choices = [_choice(need, queue, cluster, gpus) for _, queue in fitting]
    return Outlook(
        cluster=cluster.name,
        choice=choices[0] if choices else None,
        others=tuple(choices[1:]),
        rejected=tuple(rejected),
        nearest="" if choices else _nearest(need, cluster),
    )


def broken_rules(need: Need, queue: Partition, cluster: Cluster) -> list[str]:
    """Why this queue cannot do it, each reason a clause; nothing when it can."""
    rules = (
        _right_gpu(need, queue),
        _enough_gpus(need, queue),
        _enough_time(need, queue, cluster),
        _enough_memory(need, queue),
        _may_be_used(queue),
    )
    return [rule for rule in rules if rule]


def _right_gpu(need: Need, queue: Partition) -> str:
    if not need.gpus:
        reason = "it is for GPUs, and none is requested (try `--gpus 1`)"
        return "" if queue.takes(0) else reason
    if not queue.gpus:
        return "it has no GPUs"
    if need.gpu and need.gpu not in (queue.kind, queue.gpu_model):
        return f"its GPUs are {queue.kind.upper() or 'not known'}"
    return need.unfit.get(queue.kind, "")


def _enough_gpus(need: Need, queue: Partition) -> str:
    if not need.gpus or not queue.gpus:
        return ""
    nodes, per_node = _spread(need, queue)
    has = say_count(queue.gpus, "GPU")
    if nodes > 1 and not need.spreads:
        return f"its nodes have {has}, and the program runs on one node"
    if queue.most_nodes and nodes > queue.most_nodes:
        return f"a job may have {say_count(queue.most_nodes, 'node')} with {has} each"
    if queue.nodes and nodes > queue.nodes:
        return f"it has only {say_count(queue.nodes, 'node')} with {has} each"
    if queue.gpu_counts and per_node not in queue.gpu_counts:
        return f"it allows only {' or '.join(map(str, queue.gpu_counts))} GPUs per node"
    return ""


def _enough_time(need: Need, queue: Partition, cluster: Cluster) -> str:
    limit = queue.walltime
    if limit is None or need.total * _SPARE <= limit or need.total <= limit:
        return ""
    if not need.resumes:
        return (
            f"its limit is {say_duration(limit)}, and the program does not resume from a checkpoint"
        )
    if need.stretch * _SPARE > limit:
        between = f"it saves every {say_duration(need.stretch)}"
        return f"its limit is {say_duration(limit)}, and {between}: no job would make progress"
    jobs = _jobs(need, limit)
    most = cluster.most_jobs or _MOST_JOBS
    return (
        f"{say_count(jobs, 'job')} of {say_duration(limit)} would be too many"
        if jobs > most
        else ""
    )


def _enough_memory(need: Need, queue: Partition) -> str:
    nodes, _ = _spread(need, queue)
    if need.memory and queue.memory and need.memory > queue.memory * nodes:
        return f"its nodes have {say_size(queue.memory)} of memory"
    return ""


def _may_be_used(queue: Partition) -> str:
    return "you must apply for access" if queue.on_request else queue.closed


def _spread(need: Need, queue: Partition) -> tuple[int, int]:
    """Nodes, and GPUs on each: as few nodes as can be, all alike."""
    if not need.gpus or not queue.gpus:
        return 1, 0
    nodes = math.ceil(need.gpus / queue.gpus)
    per_node = math.ceil(need.gpus / nodes)
    return nodes, queue.gpus if queue.whole_nodes else per_node


def _jobs(need: Need, limit: timedelta) -> int:
    return 1 if need.total <= limit else math.ceil(need.total * _SPARE / limit)


def _rank(
    need: Need, queue: Partition, cluster: Cluster, gpus: Mapping[str, Gpu]
) -> tuple[float, ...]:
    """Few jobs, few nodes, no idle GPUs; then the better GPU, then the queue with less waiting."""
    nodes, per_node = _spread(need, queue)
    limit = queue.walltime or timedelta(days=366)
    idle = nodes * per_node - need.gpus
    gpu = gpus.get(queue.kind)
    newest = parsed(gpu.capability) if gpu and gpu.capability else (0, 0)
    return (
        _jobs(need, limit),
        nodes,
        idle,
        *(-part for part in newest),
        -queue.gpu_memory,
        limit.total_seconds(),
        not queue.default,
    )


def _choice(need: Need, queue: Partition, cluster: Cluster, gpus: Mapping[str, Gpu]) -> Choice:
    nodes, per_node = _spread(need, queue)
    walltime, jobs = _time(need, queue, cluster)
    hours = need.total.total_seconds() / 3600 * nodes * max(per_node, 0)
    gpu = gpus.get(queue.kind)
    cores = _cores(need, queue, per_node)
    return Choice(
        queue=queue.name,
        gpu=queue.kind,
        nodes=nodes,
        gpus=per_node,
        jobs=jobs,
        walltime=walltime,
        cores=cores,
        memory=_memory(need, queue, per_node),
        gpu_hours=round(hours, 1),
        core_hours=0.0 if per_node else round(need.total.total_seconds() / 3600 * cores, 1),
        unit_hours=round(hours * gpu.units, 1) if gpu else 0.0,
        reasons=tuple(_reasons(need, queue, jobs, walltime, nodes)),
    )


def _time(need: Need, queue: Partition, cluster: Cluster) -> tuple[timedelta, int]:
    """How long each job may take, and how many there are."""
    wanted = need.total * _SPARE
    limit = queue.walltime or wanted
    # Short jobs start sooner (the Alliance's advice), and fill the gaps between long ones.
    if not cluster.is_here and need.resumes and wanted > cluster.usual:
        limit = min(limit, max(cluster.usual, _rounded(need.stretch * _SPARE)))
    shortest = queue.shortest or cluster.shortest or timedelta(0)
    if need.total <= limit:
        return min(max(_rounded(wanted), shortest), max(limit, shortest)), 1
    return limit, math.ceil(wanted / limit)


def _rounded(span: timedelta) -> timedelta:
    """Up to whole minutes, or whole hours from a day on."""
    step = timedelta(hours=1) if span >= _DAY else timedelta(minutes=1)
    return -(-span // step) * step


def _cores(need: Need, queue: Partition, gpus: int) -> int:
    if not gpus:
        return need.cores or (queue.cores if queue.whole_nodes else share_of_cores(queue))
    bundle = queue.cores_per_gpu or (queue.cores // queue.gpus if queue.cores else 0)
    wanted = min(need.cores, bundle) if need.cores and bundle else need.cores or bundle
    return wanted * gpus


def _memory(need: Need, queue: Partition, gpus: int) -> int:
    if not gpus:
        return need.memory or (queue.memory if queue.whole_nodes else share_of_memory(queue))
    bundle = queue.memory_per_gpu or (queue.memory // queue.gpus if queue.memory else 0)
    return max(bundle * gpus, 0)


def _reasons(need: Need, queue: Partition, jobs: int, walltime: timedelta, nodes: int) -> list[str]:
    limit = f"its limit is {say_duration(queue.walltime)}" if queue.walltime else "it has no limit"
    reasons = [f"{limit}: one job is enough" if jobs == 1 else f"{limit}: {say_count(jobs, 'job')}"]
    if jobs > 1 and queue.walltime and walltime < queue.walltime:
        length = "a day" if walltime == _DAY else say_duration(walltime)
        reasons.append(f"jobs of {length} start sooner than longer ones")
    if need.gpus:
        has = f"{queue.gpus} {queue.kind.upper()} on a node".replace("  ", " ")
        reasons.append(has if nodes == 1 else f"{say_count(nodes, 'node')} with {has}")
    if queue.cores_per_gpu:
        reasons.append(f"{say_count(queue.cores_per_gpu, 'core')} per GPU")
    if queue.note:
        reasons.append(queue.note)
    return reasons


def _nearest(need: Need, cluster: Cluster) -> str:
    """The queue that grants most of what is wanted, and what would have to change."""
    ranked = [(broken_rules(need, queue, cluster), queue) for queue in cluster.partitions]
    if not ranked:
        return "its queues are not known"

    def order(candidate: tuple[list[str], Partition]) -> tuple[float, ...]:
        broken, queue = candidate
        return bool(_may_be_used(queue)), -_granted(need, queue, cluster), len(broken)

    broken, queue = min(ranked, key=order)
    return f"{queue.name} is closest: {'; '.join(broken)}"


def _granted(need: Need, queue: Partition, cluster: Cluster) -> float:
    """The part of what is wanted that the queue has; what a chain makes up for is not missing."""
    if _right_gpu(need, queue):
        return 0.0
    granted = 1.0
    if _enough_gpus(need, queue):
        nodes = (queue.most_nodes or queue.nodes or 1) if need.spreads else 1
        granted *= min(queue.gpus * nodes / need.gpus, 1.0)
    if queue.walltime and _enough_time(need, queue, cluster):
        granted *= min(queue.walltime / need.total, 1.0)
    if _enough_memory(need, queue):
        granted *= queue.memory / need.memory
    return granted
