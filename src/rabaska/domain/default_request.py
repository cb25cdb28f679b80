"""What a job requests where nobody said it: a queue, a time, GPUs, cores and memory."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from rabaska.domain.amounts import say_count, say_duration, say_size
from rabaska.domain.clusters import Cluster, Partition
from rabaska.domain.job_request import meant_partition
from rabaska.domain.projects import Project
from rabaska.domain.queue_limits import (
    closest_queue,
    fits,
    open_queues,
    share_of_cores,
    share_of_memory,
)


@dataclass(frozen=True)
class ProgramNeeds:
    """What the source of a program, and the packages it wants, say about GPUs."""

    gpu_line: str = ""  # the line of source that uses one
    unfit: Mapping[str, str] = field(default_factory=dict)  # GPUs its software does not run on


@dataclass(frozen=True)
class Picked:
    """A project with what was picked for it, and each of these things with its origin."""

    project: Project
    words: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        return ", ".join(self.words)


BOTH = frozenset({"cores", "memory"})


def pick(
    project: Project, cluster: Cluster, needs: ProgramNeeds, shares: AbstractSet[str] = BOTH
) -> Picked:
    """What was left out, filled in so that the cluster grants it; what was written stays.

    Of cores and memory, `shares` are picked: where a job gets little unless it asks.
    """
    if cluster.is_here or not project.left_out:
        return Picked(project)
    project, of_gpus = _with_gpus(project, cluster, needs)
    queue = _queue(project, cluster, needs)
    if queue is None:
        return _with_limit_of_usual(project, cluster, of_gpus)
    project, of_queue = _with_queue(project, cluster, queue)
    project, of_time = _with_time(project, cluster, queue)
    project, of_node = _with_share(project, cluster, queue, shares)
    return Picked(project, (*of_queue, *of_time, *of_gpus, *of_node))


def _with_limit_of_usual(project: Project, cluster: Cluster, words: tuple[str, ...]) -> Picked:
    """A job that names no queue goes to the usual one, and has its limit."""
    usual = None if project.queue else cluster.partition("")
    if usual is None:
        return Picked(project, words)
    project, of_time = _with_time(project, cluster, usual)
    return Picked(project, (*of_time, *words))


def _with_gpus(
    project: Project, cluster: Cluster, needs: ProgramNeeds
) -> tuple[Project, tuple[str, ...]]:
    if "gpus" not in project.left_out or not (needs.gpu_line or project.resources.gpu_model):
        return project, ()
    why = needs.gpu_line or "a model is named"
    named = cluster.partition(project.queue) if project.queue else None
    having = [queue for queue in ([named] if named else cluster.partitions) if queue.gpus]
    if cluster.partitions and not having:
        where = f"queue {named.name}" if named else cluster.name
        return project, (f"no GPU ({where} has none; {why})",)
    resources = replace(project.resources, gpus=_fewest(having))
    if project.launch != "program" and "tasks" not in project.written_in:
        resources = replace(resources, tasks=resources.gpus)
    picked = f"{say_count(resources.gpus, 'GPU')} ({why})"
    return replace(project, resources=resources), (picked,)


def _fewest(queues: list[Partition]) -> int:
    """One, or as few as may be asked for where not every number may be."""
    return min((min(queue.gpu_counts, default=1) for queue in queues), default=1)


def _queue(project: Project, cluster: Cluster, needs: ProgramNeeds) -> Partition | None:
    """The queue that is named, or the usual one if it grants the request, or another that does."""
    if project.queue or project.resources.gpu_model:
        return meant_partition(project, cluster)
    resources, left_out = project.resources, project.left_out
    # A chain makes up for a short limit; a program that begins again in each job needs the time.
    short_will_do = "walltime" in left_out and project.continues
    timeless = frozenset({"walltime"}) if short_will_do else frozenset()
    anyhow = frozenset({"walltime"}) if "walltime" in left_out else frozenset()
    for unfit, ignored in ((needs.unfit, timeless), (needs.unfit, anyhow), ({}, anyhow)):
        fitting = [
            queue
            for queue in open_queues(cluster)
            if queue.kind not in unfit and fits(resources, queue, ignored)
        ]
        if fitting:
            return min(fitting, key=lambda queue: _order(queue, project))
    return closest_queue(project, cluster)


def _order(queue: Partition, project: Project) -> tuple[bool, bool, float]:
    """The usual queue first, then the one with the shortest limit that is long enough."""
    wanted = project.resources.walltime.total_seconds()
    limit = queue.walltime.total_seconds() if queue.walltime else float("inf")
    return not queue.default, limit < wanted, limit if limit >= wanted else -limit


def _with_queue(
    project: Project, cluster: Cluster, queue: Partition
) -> tuple[Project, tuple[str, ...]]:
    if project.queue:
        return project, ()
    resources = project.resources
    if not cluster.names_queue:
        if queue.default or not resources.gpus or resources.gpu_model:
            return project, ()
        model = replace(resources, gpu_model=queue.gpu_model)
        return replace(project, resources=model), (f"GPU {queue.gpu_model} (it fits)",)
    if not queue.called:
        return project, ()
    why = "the default" if queue.default else "the default does not fit"
    return replace(project, queue=queue.name), (f"queue {queue.called} ({why})",)


def _with_time(
    project: Project, cluster: Cluster, queue: Partition
) -> tuple[Project, tuple[str, ...]]:
    if "walltime" not in project.left_out:
        return project, ()
    wanted = project.resources.walltime
    shortest = queue.shortest or cluster.shortest
    granted = min(wanted, queue.walltime or wanted)
    granted = max(granted, shortest) if shortest else granted
    why = ""
    if granted < wanted:
        why = " (its limit)" if cluster.names_queue else f" (the limit of {queue.name})"
    elif granted > wanted:
        why = " (the least that is accepted)"
    resources = replace(project.resources, walltime=granted)
    return replace(project, resources=resources), (f"jobs of {say_duration(granted)}{why}",)


def _with_share(
    project: Project, cluster: Cluster, queue: Partition, shares: AbstractSet[str]
) -> tuple[Project, tuple[str, ...]]:
    """Cores and memory: what goes with the GPUs, or a small part of a node."""
    resources = project.resources
    if resources.exclusive or queue.whole_nodes or cluster.whole_nodes:
        return project, ()
    words = []
    shares = shares & project.left_out
    of_node = share_of_cores(queue, resources.gpus, resources.tasks)
    if "cores" in shares and cluster.names_cores and of_node >= resources.tasks:
        resources = replace(resources, cores=of_node // resources.tasks)
        words.append(say_count(of_node, "core"))
    if "memory" in shares and (memory := share_of_memory(queue, resources.gpus)):
        resources = replace(resources, memory=memory)
        words.append(say_size(memory))
    if not words:
        return project, ()
    why = (
        f"what goes with {say_count(resources.gpus, 'GPU')}" if resources.gpus else "part of a node"
    )
    picked = f"{' and '.join(words)} ({why})"
    return replace(project, resources=resources), (picked,)
