"""What to write where a queue does not grant a request: another queue, or less of something."""

from datetime import timedelta

from rabaska.checkup.subject import Subject
from rabaska.domain.amounts import say_duration
from rabaska.domain.clusters import Partition
from rabaska.domain.queue_limits import (
    closest_queue,
    cluster_line,
    exceeded,
    granted_parts,
    line,
    other_queue,
    queue_line,
    write_size,
)

_MOST_JOBS = 1000  # that anybody would queue


def what_to_write(subject: Subject, queue: Partition, key: str) -> str:
    """The queue that grants the whole request, or most of it; or what this one grants of `key`."""
    project, cluster = subject.project, subject.cluster
    here = _less(subject, queue, key)
    fitting, other = other_queue(project, cluster), queue_line(project, cluster)
    if fitting and other:
        limit = f"up to {say_duration(fitting.walltime)}" if fitting.walltime else "no limit"
        return _either(f"{other} (it grants all of it, {limit})", here)
    return _either("" if fitting else _most(subject, queue), here)


def _either(first: str, second: str) -> str:
    lines = ", or ".join(text for text in (first, second) if text)
    return f"write {lines}" if lines else "ask for less: `rabaska plan` says what it grants"


def _most(subject: Subject, queue: Partition) -> str:
    """Another queue that grants more, with all that must be less there; "" where none does."""
    project, cluster = subject.project, subject.cluster
    closest = closest_queue(project, cluster)
    if closest is None or closest == queue or not (cluster.names_queue and closest.called):
        return ""
    if not all(granted_parts(project.resources, closest).values()):
        return ""
    less = [_less(subject, closest, key) for key in sorted(exceeded(project.resources, closest))]
    if not all(less):
        return ""
    named = cluster_line("queue", closest.called, project, cluster.name)
    return f"{' and '.join([named, *less])} (it grants the most)"


def _less(subject: Subject, queue: Partition, key: str) -> str:
    """The lines by which the queue grants what `key` asks for; "" where no line would help."""
    project, resources = subject.project, subject.project.resources
    if key == "walltime":
        limit = queue.walltime or timedelta(0)
        if not project.continues:
            again = "if all of its work fits: it would begin again in a second job"
            return f"{line('walltime', limit, project)} {again}"
        jobs = -(-resources.walltime // limit) * project.chain.jobs if limit else _MOST_JOBS + 1
        lines = f"{line('walltime', limit, project)} and {line('jobs', jobs, project)}"
        return lines if jobs <= _MOST_JOBS else ""
    if key == "gpus":
        return _other_gpus(subject, queue)
    most: dict[str, str | int] = {
        "cores": queue.cores // resources.tasks or 1,
        "memory": write_size(queue.memory),
        "nodes": queue.most_nodes or queue.nodes,
    }
    return line(key, most[key], project)


def _other_gpus(subject: Subject, queue: Partition) -> str:
    project, wanted = subject.project, subject.project.resources.gpus
    if not wanted:
        return line("gpus", 1, project)
    if wanted <= queue.gpus and queue.gpu_counts:
        return line("gpus", _nearest(wanted, queue), project)
    fewer = line("gpus", queue.gpus, project)
    if not queue.gpus or project.launch == "program":
        return fewer
    nodes = project.resources.nodes * -(-wanted // queue.gpus)
    return f"{fewer} and {line('nodes', nodes, project)}"


def _nearest(wanted: int, queue: Partition) -> int:
    return min(queue.gpu_counts, key=lambda count: (abs(count - wanted), count))
