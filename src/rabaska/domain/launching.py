"""Whether a program can be started as its project says, known before anything is sent."""

from rabaska.domain.clusters import Cluster
from rabaska.domain.jobs import Capabilities, JobSpec
from rabaska.errors import SettingsError

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
    if nodes > 1 and able.several_by and not _names(spec, able.several_by):
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


def _names(spec: JobSpec, option: str) -> bool:
    return any(one.split()[:1] == [option] for one in spec.native)


def _what_starts(cluster: Cluster) -> str:
    return f"its profile says `mpi = {cluster.mpi!r}`" if cluster.mpi else "its profile names none"
