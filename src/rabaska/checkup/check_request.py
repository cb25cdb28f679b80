"""Checks of what is asked of a cluster: requests that it refuses, or that never start."""

import difflib
import re
from collections.abc import Iterator

from rabaska.checkup.finding import Finding
from rabaska.checkup.request_advice import what_to_write
from rabaska.checkup.subject import Subject
from rabaska.domain.amounts import say_count, say_duration, say_size
from rabaska.domain.clusters import Partition
from rabaska.domain.job_request import plain_accounts
from rabaska.domain.queue_limits import cluster_line, line, write_size
from rabaska.domain.stored_items import purge_span


def checks(subject: Subject) -> Iterator[Finding]:
    if subject.cluster.is_here:
        return
    yield from _gone(subject)
    yield from _account(subject)
    yield from _queue(subject)
    yield from _model(subject)
    yield from _site_limits(subject)
    yield from _purge(subject)
    if subject.partition:
        yield from _closed(subject, subject.partition)
        yield from _time(subject, subject.partition)
        yield from _gpus(subject, subject.partition)
        yield from _node(subject, subject.partition)
        yield from _bundle(subject, subject.partition)


def _where(subject: Subject, key: str) -> str:
    return f"{key} for {subject.cluster.name}"


def _gone(subject: Subject) -> Iterator[Finding]:
    cluster = subject.cluster
    if cluster.status == "retired":
        use = " or ".join(f"`--on {name}`" for name in cluster.successors)
        yield Finding(
            "cluster.gone",
            cluster.retirement,
            f"--on {cluster.name}",
            "the cluster no longer answers",
            f"use {use}" if use else "use another cluster",
        )


def _account(subject: Subject) -> Iterator[Finding]:
    cluster, account = subject.cluster, subject.project.account
    if not cluster.account_form:
        return
    looks = f"accounts there look like {cluster.account_form}"
    if not account:
        yield Finding(
            "cluster.account",
            "the job names no account",
            _where(subject, "account"),
            looks,
            _account_line(subject),
        )
    elif not re.match(cluster.account_form, account):
        yield Finding(
            "cluster.account",
            f"`{account}` does not look like an account of {cluster.name}",
            _where(subject, "account"),
            looks,
            "correct it, or ask the site for your accounts",
        )


def _account_line(subject: Subject) -> str:
    yours = plain_accounts(subject.cluster.accounts)
    others = f"; yours are {', '.join(yours)}" if len(yours) > 1 else ""
    account = yours[0] if yours else "…"
    return (
        f"write {cluster_line('account', account, subject.project, subject.cluster.name)}{others}"
    )


def _queue(subject: Subject) -> Iterator[Finding]:
    cluster, queue = subject.cluster, subject.project.queue
    if not queue or not cluster.partitions or cluster.partition(queue):
        return
    if not cluster.names_queue:
        yield Finding(
            "cluster.queue",
            f"{cluster.name} chooses the queue itself",
            _where(subject, "queue"),
            "a job that names one may wait longer, or be refused",
            f"delete `queue` under [cluster.{cluster.name}]",
            serious=False,
        )
        return
    names = [partition.called for partition in cluster.partitions]
    near = difflib.get_close_matches(queue, names, n=1)
    yield Finding(
        "cluster.queue",
        f"{cluster.name} has no queue `{queue}`",
        _where(subject, "queue"),
        "sbatch and qsub refuse jobs for a queue that does not exist",
        f"did you mean {near[0]}? Write "
        + cluster_line("queue", near[0], subject.project, cluster.name)
        if near
        else f"the queues are {', '.join(dict.fromkeys(names))}",
    )


def _model(subject: Subject) -> Iterator[Finding]:
    resources, cluster = subject.project.resources, subject.cluster
    names = {
        name
        for partition in cluster.partitions
        for name in (partition.gpu_model, partition.kind)
        if name
    }
    if not resources.gpu_model or not resources.gpus or not names or resources.gpu_model in names:
        return
    yield Finding(
        "cluster.model",
        f"{cluster.name} has no GPU called `{resources.gpu_model}`",
        _where(subject, "[resources] gpu_model"),
        "no node has it (BadConstraints)",
        f"its GPUs are {', '.join(sorted(names))}: write "
        + line("gpu_model", sorted(names)[0], subject.project),
    )


def _site_limits(subject: Subject) -> Iterator[Finding]:
    cluster, project = subject.cluster, subject.project
    shortest = (subject.partition and subject.partition.shortest) or cluster.shortest
    if shortest and project.resources.walltime < shortest:
        yield Finding(
            "cluster.short",
            f"{say_duration(project.resources.walltime)} is too short a time limit",
            _where(subject, "[resources] walltime"),
            f"{cluster.name} accepts no limit below {say_duration(shortest)}",
            f"write {line('walltime', shortest, subject.project)}",
            serious=False,
        )
    if cluster.most_jobs and project.chain.jobs > cluster.most_jobs:
        yield Finding(
            "cluster.many",
            f"{say_count(project.chain.jobs, 'job')} at once are too many",
            _where(subject, "[chain] jobs"),
            f"{cluster.name} allows {say_count(cluster.most_jobs, 'job')} per user in the queue",
            f"write {line('jobs', cluster.most_jobs, subject.project)}, each with more time",
        )


def _purge(subject: Subject) -> Iterator[Finding]:
    """A chain may outlive the data it reads: jobs wait, and packs are written once."""
    tier, project = subject.cluster.store_tier, subject.project
    kept = purge_span(tier.purge) if tier else None
    lasts = project.resources.walltime * project.chain.jobs
    if tier and kept and lasts > kept / 2:
        yield Finding(
            "cluster.purge-soon",
            f"the run may take {say_duration(lasts)}, and the site deletes files in {tier.name}",
            "[storage] store of the profile",
            f"it says: {tier.purge}",
            "fetch regularly, or keep the store in another tier",
            serious=False,
        )


def _closed(subject: Subject, queue: Partition) -> Iterator[Finding]:
    if queue.closed:
        yield Finding(
            "cluster.closed",
            f"no job in {queue.name} starts now",
            _where(subject, "queue"),
            queue.closed,
            "name another queue, or ask the site when it opens again",
            serious="takes no jobs" in queue.closed,
        )


def _time(subject: Subject, queue: Partition) -> Iterator[Finding]:
    requested = subject.project.resources.walltime
    if queue.walltime and requested > queue.walltime:
        yield Finding(
            "cluster.time",
            f"{say_duration(requested)} is longer than {queue.name} allows",
            _where(subject, "[resources] walltime"),
            f"its limit is {say_duration(queue.walltime)} (PartitionTimeLimit)",
            what_to_write(subject, queue, "walltime"),
        )


def _gpus(subject: Subject, queue: Partition) -> Iterator[Finding]:
    resources, where = subject.project.resources, _where(subject, "[resources] gpus")
    if queue.gpus and not queue.takes(resources.gpus) and subject.project.queue:
        yield Finding(
            "cluster.no-gpu",
            f"{queue.name} is a queue for GPUs, and the job requests none",
            where,
            "such a job waits forever (QOSMinGRES)",
            what_to_write(subject, queue, "gpus"),
        )
    elif resources.gpus > queue.gpus:
        has = f"its nodes have {queue.gpus}" if queue.gpus else "it has none"
        yield Finding(
            "cluster.gpus",
            f"{say_count(resources.gpus, 'GPU')} per node: more than {queue.name} has",
            where,
            f"{has}; the job would never start",
            what_to_write(subject, queue, "gpus"),
        )
    elif resources.gpus and queue.gpu_counts and resources.gpus not in queue.gpu_counts:
        allowed = " or ".join(map(str, queue.gpu_counts))
        yield Finding(
            "cluster.gpu-count",
            f"{queue.name} allows {allowed} GPUs per node, not {resources.gpus}",
            where,
            "the site refuses other numbers",
            what_to_write(subject, queue, "gpus"),
        )


def _node(subject: Subject, queue: Partition) -> Iterator[Finding]:
    resources = subject.project.resources
    cores = (resources.cores or 0) * resources.tasks
    if queue.cores and cores > queue.cores:
        yield Finding(
            "cluster.cores",
            f"{say_count(cores, 'core')} per node: more than {queue.name} has",
            _where(subject, "[resources] cores"),
            f"its nodes have {queue.cores}; the job would never start",
            what_to_write(subject, queue, "cores"),
        )
    if queue.memory and (resources.memory or 0) > queue.memory:
        yield Finding(
            "cluster.memory",
            f"{say_size(resources.memory or 0)} of memory: more than a node has",
            _where(subject, "[resources] memory"),
            f"the nodes of {queue.name} have {say_size(queue.memory)}; the job would never start",
            what_to_write(subject, queue, "memory"),
        )
    if queue.most_nodes and resources.nodes > queue.most_nodes:
        yield Finding(
            "cluster.nodes",
            f"{say_count(resources.nodes, 'node')}: more than one job may have",
            _where(subject, "[resources] nodes"),
            f"{queue.name} allows {queue.most_nodes} (PartitionNodeLimit)",
            what_to_write(subject, queue, "nodes"),
        )


def _bundle(subject: Subject, queue: Partition) -> Iterator[Finding]:
    """What goes with one GPU: more of it bills as more GPUs."""
    resources = subject.project.resources
    if queue.whole_nodes and 0 < resources.gpus < queue.gpus and not queue.gpu_counts:
        yield Finding(
            "cluster.exclusive",
            f"{queue.name} allocates whole nodes, "
            f"and the job uses {resources.gpus} of {queue.gpus} GPUs",
            _where(subject, "[resources] gpus"),
            "the others are billed too",
            f"write {line('gpus', queue.gpus, subject.project)} and set `launch`",
            serious=False,
        )
    if not resources.gpus or queue.whole_nodes:
        return
    cores, memory = (resources.cores or 0) * resources.tasks, resources.memory or 0
    most_cores = queue.cores_per_gpu * resources.gpus // resources.tasks
    most_memory = write_size(queue.memory_per_gpu * resources.gpus)
    if queue.cores_per_gpu and queue.cores >= cores > queue.cores_per_gpu * resources.gpus:
        yield Finding(
            "cluster.bundle",
            f"{say_count(cores, 'core')}: more than go with {say_count(resources.gpus, 'GPU')}",
            _where(subject, "[resources] cores"),
            "it is billed as more GPUs, and waits longer",
            f"write {line('cores', most_cores, subject.project)}",
            serious=False,
        )
    if queue.memory_per_gpu and queue.memory >= memory > queue.memory_per_gpu * resources.gpus:
        yield Finding(
            "cluster.bundle",
            f"{say_size(memory)} of memory: more than goes with {say_count(resources.gpus, 'GPU')}",
            _where(subject, "[resources] memory"),
            "it is billed as more GPUs, and waits longer",
            f"write {line('memory', most_memory, subject.project)}",
            serious=False,
        )
