"""What is picked where nobody said it: always something that the cluster grants."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.clusters import Cluster, Partition
from rabaska.domain.default_request import ProgramNeeds, pick
from rabaska.domain.jobs import Resources
from rabaska.domain.projects import Project
from rabaska.domain.queue_limits import closest_queue, fits, line, queue_line
from rabaska.settings.profile_files import names
from rabaska.settings.profiles import load_cluster

ALL = frozenset({"queue", "walltime", "gpus", "cores", "memory", "nodes", "jobs"})
GB = 10**9
USES_CUDA = ProgramNeeds("train.py, line 12: torch.cuda.is_available")
CLUSTERS = {name: load_cluster(name) for name in names() if name != "here"}


def hours(number):
    return timedelta(hours=number)


DEV = Partition("dev", hours(1 / 3), 2, 24, 64 * GB, 2, "k40", default=True, without_gpus=True)
LONG = replace(DEV, name="long", walltime=hours(48), default=False)
BIG = Partition("big", hours(48), 1, 40, 384 * GB, 8, "v100", without_gpus=True)
SITE = Cluster("site", "Site", "slurm", host="site", partitions=(DEV, LONG, BIG))


def project(left_out=ALL, command=("python", "t.py", "{checkpoint}"), **resources):
    wanted = {"walltime": hours(3), **resources}
    return Project("p", Path("p"), command, Resources(**wanted), left_out=left_out)


def test_a_short_default_queue_makes_short_jobs_of_a_program_that_continues():
    picked = pick(project(), SITE, ProgramNeeds())

    assert picked.project.queue == "dev"
    assert picked.project.resources.walltime == hours(1 / 3)
    assert picked.project.resources.cores == 4
    assert picked.project.resources.memory == 10 * GB
    assert "jobs of 20 min (its limit)" in picked.sentence


def test_a_program_that_begins_again_gets_a_queue_with_enough_time():
    picked = pick(project(command=("python", "t.py")), SITE, ProgramNeeds())

    assert picked.project.queue == "long"
    assert picked.project.resources.walltime == hours(3)


def test_a_program_that_uses_cuda_gets_one_gpu_and_its_share_of_the_node():
    picked = pick(project(), SITE, USES_CUDA)

    assert picked.project.resources.gpus == 1
    assert picked.project.resources.cores == 12
    assert picked.project.resources.memory == 30 * GB
    assert "1 GPU (train.py, line 12: torch.cuda.is_available)" in picked.sentence


def test_a_gpu_that_its_packages_cannot_use_is_passed_over():
    needs = replace(USES_CUDA, unfit={"k40": "torch 2.5 holds no code for K40"})

    assert pick(project(), SITE, needs).project.queue == "big"


def test_a_cluster_without_gpus_is_not_asked_for_one():
    site = replace(SITE, partitions=(replace(DEV, gpus=0, gpu_model=""),))

    picked = pick(project(), site, USES_CUDA)

    assert picked.project.resources.gpus == 0
    assert "no GPU (site has none" in picked.sentence


def test_what_was_written_stays():
    written = project(frozenset({"queue"}), walltime=hours(30), gpus=8, cores=2, memory=GB)

    picked = pick(written, SITE, USES_CUDA)

    assert picked.project.resources == written.resources
    assert picked.project.queue == "big"


def test_nothing_is_picked_where_everything_was_written():
    assert pick(project(frozenset()), SITE, USES_CUDA).words == ()


def test_this_computer_is_not_asked_for_anything():
    here = replace(SITE, host="")

    assert pick(project(), here, USES_CUDA).project == project()


@pytest.mark.parametrize("gpus", [0, 1, 8])
def test_no_cores_where_the_site_gives_enough(gpus):
    written = project(ALL - {"gpus"}, gpus=gpus)

    assert pick(written, SITE, USES_CUDA, frozenset({"memory"})).project.resources.cores is None


@given(
    name=st.sampled_from(sorted(CLUSTERS)),
    needs=st.sampled_from([ProgramNeeds(), USES_CUDA]),
    command=st.sampled_from([("python", "t.py"), ("python", "t.py", "{checkpoint}")]),
)
def test_what_is_picked_is_granted_on_every_cluster(name, needs, command):
    cluster = CLUSTERS[name]

    picked = pick(project(command=command), cluster, needs).project

    queue = cluster.partition(picked.queue)
    if queue and queue.takes(picked.resources.gpus):
        assert fits(picked.resources, queue)


def test_a_line_names_the_table_in_which_the_key_stands():
    written = {"walltime": "[cluster.site.resources]", "gpus": ""}
    one = replace(project(), written_in=written)

    assert line("walltime", hours(36), one) == (
        '`walltime = "1d12h"` under [cluster.site.resources]'
    )
    assert line("gpus", 2, one) == "`--gpus 2`"
    assert line("memory", "3 GB", one) == '`memory = "3 GB"` under [resources]'


@pytest.mark.parametrize(
    ("asked", "closest"),
    [
        ({"walltime": hours(96)}, "long"),
        ({"gpus": 9, "walltime": hours(96)}, "big"),
        ({"gpus": 6, "walltime": hours(480)}, "big"),
        ({"memory": 500 * GB}, "big"),
        ({"gpus": 9, "gpu_model": "k40"}, "long"),
    ],
)
def test_where_no_queue_grants_it_the_one_that_grants_most_is_named(asked, closest):
    assert closest_queue(project(**asked), SITE).name == closest


def test_no_more_cores_are_picked_than_a_node_has():
    picked = pick(project(ALL - {"gpus"}, gpus=9), SITE, ProgramNeeds())

    assert picked.project.queue == "big"
    assert picked.project.resources.cores == 40


def test_the_queue_that_would_fit_is_named():
    assert queue_line(project(walltime=hours(20)), SITE) == '`queue = "long"` under [cluster.site]'
    assert queue_line(project(gpus=8), SITE) == '`queue = "big"` under [cluster.site]'
    assert queue_line(project(gpus=9), SITE) == ""
