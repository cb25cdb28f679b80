"""What a job requests: completed by what its cluster demands, checked before anything is sent."""

import re
from collections.abc import Iterable
from dataclasses import replace

from rabaska.domain.clusters import Cluster, Partition
from rabaska.domain.jobs import Capabilities, JobSpec
from rabaska.domain.projects import Project
from rabaska.errors import SettingsError


def with_site_defaults(project: Project, cluster: Cluster) -> Project:
    """The project with the queue, the GPU model and the options that the cluster wants to hear.

    What the project says itself is never changed, only spelled as the cluster spells it.
    """
    meant = meant_partition(project, cluster)
    if meant is None:
        return project
    return replace(
        project,
        queue=meant.called if cluster.names_queue or project.queue else "",
        features=project.features or meant.features,
        native=(*meant.native, *(word for word in project.native if word not in meant.native)),
        resources=replace(project.resources, gpu_model=_spelled(project, meant, cluster)),
    )


def meant_partition(project: Project, cluster: Cluster) -> Partition | None:
    """The queue that is named, or the only one with the GPU that is, or the usual one.

    None when the profile does not have it, or it is not of the requested kind.
    """
    resources = project.resources
    if project.queue:
        return cluster.partition(project.queue)
    if resources.gpus and resources.gpu_model:
        fitting = [
            partition
            for partition in cluster.partitions
            if resources.gpu_model in _gpu_names(partition)
        ]
        unnamed = [partition for partition in fitting if not partition.called]
        alike = len({partition.called for partition in fitting}) == 1
        return next(iter(unnamed or (fitting if alike else ())), None)
    usual = cluster.partition("")
    if usual and usual.takes(resources.gpus):
        return usual
    # Where the site chooses by itself, the only kind of node that takes such jobs is meant.
    of_kind = [each for each in cluster.partitions if each.takes(resources.gpus)]
    return of_kind[0] if len(of_kind) == 1 and not cluster.names_queue else None


def _gpu_names(partition: Partition) -> tuple[str, str]:
    return partition.gpu_model, partition.kind


def _spelled(project: Project, meant: Partition, cluster: Cluster) -> str:
    """The model as this scheduler knows it; nothing where its queues or features tell it."""
    resources = project.resources
    if resources.gpu_model:
        return meant.gpu_model if resources.gpu_model == meant.kind else resources.gpu_model
    return meant.gpu_model if resources.gpus and cluster.names_model else ""


def plain_accounts(names: Iterable[str]) -> tuple[str, ...]:
    """As a job names them: the Alliance keeps each twice, as def-prof_cpu and def-prof_gpu."""
    return tuple(dict.fromkeys(re.sub(r"_(cpu|gpu)$", "", name) for name in sorted(names)))


MPIRUN = "mpirun"


def check_launch(spec: JobSpec, cluster: Cluster, able: Capabilities) -> None:
    """SettingsError where the cluster has no way to start it, or we would not find its jobs."""
    _refuse_own_options(spec, cluster, able)
    nodes = spec.resources.nodes
    if nodes > 1 and not able.reach:
        raise SettingsError(
            f"{cluster.name} cannot run a program on {nodes} nodes",
            why="nothing there can start a program on the other nodes of a job",
            hint="set `nodes = 1` under [resources], or use another cluster",
        )
    if nodes > 1 and able.several_by and not _requests_option(spec, able.several_by):
        raise SettingsError(
            f"{cluster.name} needs `{able.several_by}` for jobs of {nodes} nodes",
            why="a job there gets one node unless it names a parallel environment",
            hint=f"set `native = ['{able.several_by} NAME NUMBER']` in [cluster.{cluster.name}]; "
            "`qconf -spl` there lists the names",
        )
    if spec.launch == "mpi" and able.reach != "srun" and cluster.mpi != MPIRUN:
        raise SettingsError(
            f"{cluster.name} cannot start an MPI program",
            why=f"{_what_starts(cluster)}, and there is no srun",
            hint=f'set `[jobs] mpi = "mpirun"` in the profile of {cluster.name}, if its jobs '
            'have mpirun; or use `launch = "torchrun"`',
        )


def _refuse_own_options(spec: JobSpec, cluster: Cluster, able: Capabilities) -> None:
    for line in spec.native:
        if option := able.own_option(line):
            of_profile = f"`native` in the profile of {cluster.name}"
            of_project = f"`native` under [cluster.{cluster.name}] in rabaska.toml, or `--native`"
            raise SettingsError(
                f"`{option}` cannot be used in `native`: `{line}`",
                why="rabaska sets it itself, to find the jobs of a run and their logs",
                hint=f"remove it from {of_profile if line in cluster.native else of_project}",
            )


def _requests_option(spec: JobSpec, option: str) -> bool:
    return any(one.split()[:1] == [option] for one in spec.native)


def _what_starts(cluster: Cluster) -> str:
    return f"its profile says `mpi = {cluster.mpi!r}`" if cluster.mpi else "its profile names none"
