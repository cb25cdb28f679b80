"""What no cluster could start is refused before anything is sent."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rabaska.domain.job_request import check_launch
from rabaska.domain.jobs import JobSpec, Resources
from rabaska.errors import SettingsError
from rabaska.schedulers import SCHEDULERS, named
from rabaska.settings.profiles import load_cluster

ONE = JobSpec("cats", Resources(timedelta(hours=1)), "/logs")
TWO = replace(ONE, resources=Resources(timedelta(hours=1), nodes=2, tasks=2))


def check(spec, scheduler, mpi=""):
    able = named(scheduler, program=("python3",), queue="q").capabilities
    cluster = replace(load_cluster("here"), name="campus", scheduler=scheduler, mpi=mpi)
    check_launch(spec, cluster, able)


@pytest.mark.parametrize("scheduler", sorted(SCHEDULERS))
@pytest.mark.parametrize("launch", ["program", "torchrun", "srun"])
def test_one_node_needs_nothing(scheduler, launch):
    check(replace(ONE, launch=launch), scheduler)


@pytest.mark.parametrize("scheduler", ["slurm", "pbs", "torque", "moab"])
@pytest.mark.parametrize("launch", ["program", "torchrun", "srun"])
def test_several_nodes_are_reached_where_the_scheduler_has_a_way(scheduler, launch):
    check(replace(TWO, launch=launch), scheduler)


@pytest.mark.parametrize("scheduler", ["sqsub", "local"])
def test_several_nodes_that_nothing_reaches_are_refused(scheduler):
    with pytest.raises(SettingsError, match="campus cannot run a program on 2 nodes"):
        check(replace(TWO, launch="torchrun"), scheduler)


def test_grid_engine_needs_the_name_of_a_parallel_environment():
    with pytest.raises(SettingsError, match=r"`native = \['-pe NAME NUMBER'\]`"):
        check(replace(TWO, launch="torchrun"), "sge")

    check(replace(TWO, launch="torchrun", native=("-pe mpi 4",)), "sge")


@pytest.mark.parametrize("scheduler", sorted(SCHEDULERS.keys() - {"slurm"}))
@pytest.mark.parametrize("mpi", ["", "pmix"])
def test_mpi_without_a_way_to_start_it_is_refused(scheduler, mpi):
    with pytest.raises(SettingsError, match="campus cannot start an MPI program") as refused:
        check(replace(ONE, launch="mpi"), scheduler, mpi)

    assert 'mpi = "mpirun"' in str(refused.value)
    check(replace(ONE, launch="mpi"), scheduler, "mpirun")


def test_slurm_starts_mpi_programs_by_itself():
    check(replace(TWO, launch="mpi"), "slurm")


OWN = {
    "slurm": [
        "--job-name=x",
        "-J x",
        "-Jx",
        "--output=/x",
        "--array=1-9",
        "--comment=x",
        "--arr=1",
    ],
    "pbs": ["-N training", "-Ntraining", "-J 1-9", "-o /x", "-q big -N training"],
    "torque": ["-N training", "-t 1-9", "-z"],
    "moab": ["-N training"],
    "sge": ["-N training", "-t 1-9", "-o /x"],
    "sqsub": ["-j training", "-o /x"],
    "flux": ["--job-name=x", "--output=/x", "--error=/x"],
    "local": ["--name=x", "--output=/x", "--elements=9"],
}
GIVEN = {
    "slurm": ["--nice=7", "-N 2", "--exclusive", "--time=5", "--open-mode=append", "-d after:7"],
    "pbs": ["-P proj", "-l place=excl", "-W umask=22"],
    "torque": ["-W x=GRES:a -q big"],
    "sge": ["-tc 2", "-pe mpi 8", "-l mem_free=8G", "-notify"],
    "sqsub": ["--pack -f xeon"],
    "flux": ["--urgency=8", "-o cpu-affinity=off", "--queue=debug"],
    "local": ["--grace=45"],
}


def test_every_scheduler_has_options_that_are_ours():
    assert SCHEDULERS.keys() - OWN.keys() == set(), (
        "add it to OWN, and what users may give to GIVEN"
    )


@pytest.mark.parametrize(("scheduler", "line"), [(one, each) for one in OWN for each in OWN[one]])
def test_an_option_by_which_jobs_are_found_is_refused(scheduler, line):
    with pytest.raises(SettingsError, match="cannot be used in `native`") as refused:
        check(
            replace(ONE, native=("-q x" if scheduler != "local" else "--grace=1", line)), scheduler
        )

    assert f"`{line}`" in str(refused.value)


@pytest.mark.parametrize(
    ("scheduler", "line"), [(one, each) for one in GIVEN for each in GIVEN[one]]
)
def test_other_options_are_their_users(scheduler, line):
    check(replace(ONE, native=(line, "# -N x -J x -o x")), scheduler)
