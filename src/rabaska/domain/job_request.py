"""What a job requests: completed by what its cluster demands, checked before anything is sent."""

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

    None when the profile does not know it, or it is not of the kind that is asked for.
    """
    asked = project.resources
    if project.queue:
        return cluster.partition(project.queue)
    if asked.gpus and asked.gpu_model:
        fitting = [each for each in cluster.partitions if asked.gpu_model in _gpu_names(each)]
        unnamed = [each for each in fitting if not each.called]
        alike = len({each.called for each in fitting}) == 1
        return next(iter(unnamed or (fitting if alike else ())), None)
    usual = cluster.partition("")
    return usual if usual and usual.takes(asked.gpus) else None


def _gpu_names(partition: Partition) -> tuple[str, str]:
    return partition.gpu_model, partition.kind


def _spelled(project: Project, meant: Partition, cluster: Cluster) -> str:
    """The model as this scheduler knows it; nothing where its queues or features tell it."""
    asked = project.resources
    if asked.gpu_model:
        return meant.gpu_model if asked.gpu_model == meant.kind else asked.gpu_model
    return meant.gpu_model if asked.gpus and cluster.names_model else ""


MPIRUN = "mpirun"


def check_launch(spec: JobSpec, cluster: Cluster, able: Capabilities) -> None:
    """SettingsError where the cluster has no way to start it, or we would not find its jobs."""
    _refuse_own_options(spec, cluster, able)
    nodes = spec.resources.nodes
    if nodes > 1 and not able.reach:
        raise SettingsError(
            f"{cluster.name} cannot run a program on {nodes} nodes",
            why="nothing there starts a program on the other nodes of a job",
            hint="`nodes = 1` under [resources], or another cluster",
        )
    if nodes > 1 and able.several_by and not _requests_option(spec, able.several_by):
        raise SettingsError(
            f"{cluster.name} has a name of its own for jobs of {nodes} nodes",
            why=f"a job there has one node unless `{able.several_by}` says otherwise",
            hint=f"`native = ['{able.several_by} NAME NUMBER']` in [cluster.{cluster.name}]; "
            "`qconf -spl` there lists the names",
        )
    if spec.launch == "mpi" and able.reach != "srun" and cluster.mpi != MPIRUN:
        raise SettingsError(
            f"{cluster.name} has no way to start an MPI program",
            why=f"{_what_starts(cluster)}, and there is no srun",
            hint=f'`[jobs] mpi = "mpirun"` in the profile of {cluster.name}, where mpirun is '
            'there for its jobs; or `launch = "torchrun"`',
        )


def _refuse_own_options(spec: JobSpec, cluster: Cluster, able: Capabilities) -> None:
    for line in spec.native:
        if option := able.own_option(line):
            of_profile = f"`native` in the profile of {cluster.name}"
            of_project = f"`native` under [cluster.{cluster.name}] in rabaska.toml, or `--native`"
            raise SettingsError(
                f"`{option}` is not for `native`: `{line}`",
                why="rabaska sets it itself: by it the jobs of a run, or their logs, are found",
                hint=f"leave it out of {of_profile if line in cluster.native else of_project}",
            )


def _requests_option(spec: JobSpec, option: str) -> bool:
    return any(one.split()[:1] == [option] for one in spec.native)


def _what_starts(cluster: Cluster) -> str:
    return f"its profile says `mpi = {cluster.mpi!r}`" if cluster.mpi else "its profile names none"
