"""Which scheduler a site has, and what its queues are, by what its commands print."""

from datetime import timedelta

import pytest

from rabaska.domain.clusters import Cluster, Partition
from rabaska.domain.queue_limits import share_of_cores, share_of_memory
from rabaska.schedulers import (
    SCHEDULERS,
    named,
    pbs_queues,
    queue_values,
    recognition,
    slurm_queues,
)


@pytest.mark.parametrize(
    ("programs", "said", "scheduler"),
    [
        (["sbatch", "qsub"], "slurm 23.02.6", "slurm"),
        (["qsub", "sqsub"], "", "sqsub"),
        (["qsub", "qconf"], "", "sge"),
        (["qsub"], "SGE_ROOT=/opt/sge", "sge"),
        (["qsub", "msub", "pbsnodes"], "Version: 6.1.2\nSGE_ROOT=", "moab"),
        (["qsub", "pbsnodes"], "pbs_version = 2022.1.1\nSGE_ROOT=", "pbs"),
        (["qsub", "pbsnodes"], "Version: 6.1.2\nSGE_ROOT=", "torque"),
        ([], "SGE_ROOT=", "local"),
    ],
)
def test_schedulers_are_told_apart(programs, said, scheduler):
    answers = {recognition.PROGRAMS: "\n".join(programs), recognition.VERSIONS: said}

    assert recognition.recognised(lambda name: answers.get(name, "")).name == scheduler


def test_who_is_installed_and_serves_nothing_is_not_meant():
    answers = {
        recognition.PROGRAMS: "sbatch qsub pbsnodes",
        recognition.VERSIONS: "slurm 23.02.6\nVersion: 6.1.2",
        "queues": PBS_QUEUES,
    }

    found = recognition.recognised(lambda name: answers.get(name, ""))

    assert (found.name, found.version) == ("torque", "Version: 6.1.2")
    assert [each.name for each in found.partitions] == ["gpu", "private", "entry"]


@pytest.mark.parametrize("name", [name for name in SCHEDULERS if name != "local"])
def test_every_scheduler_is_found_by_a_program_that_is_looked_for(name):
    site = named(name, program=(), queue="").site

    assert site.programs
    assert any(site.is_there([program], "pbs_version = 1") for program in site.programs) or (
        site.is_there(["qsub"], "")
    )


# As OpenPBS spells it: a queue with nodes of its own, one for others, one that leads to both.
PBS_QUEUES = """\
@user alice
@groups alice proj
Queue: gpu
    queue_type = Execution
    resources_max.ngpus = 1
    resources_max.nodect = 4
    resources_min.walltime = 00:10:00
    acl_group_enable = True
    acl_groups = proj,other
    enabled = True
    started = True

Queue: private
    queue_type = Execution
    acl_user_enable = True
    acl_users = bob@*
    enabled = True
    started = True

Queue: entry
    queue_type = Route
    route_destinations = gpu,
\tinner
    enabled = True
    started = True

Queue: inner
    queue_type = Execution
    from_route_only = True
    resources_max.walltime = 120:00:00
    enabled = True
    started = True
"""
PBS_NODES = """\
gpu1
     Mom = gpu1
     state = free
     queue = gpu
     resources_available.mem = 1048576kb
     resources_available.ncpus = 8
     resources_available.ngpus = 4
     resources_available.gpu_model = a100

thin1
     Mom = thin1
     state = down
     resources_available.mem = 524288kb
     resources_available.ncpus = 16
"""


def test_queues_of_pbs_have_their_own_nodes_limits_and_users():
    server = "Server: control\n    default_queue = entry\n"

    gpu, private, entry = pbs_queues.partitions(PBS_QUEUES, PBS_NODES, server)

    assert gpu == Partition(
        "gpu", nodes=1, cores=8, memory=2**30, gpus=1, gpu_model="a100", most_nodes=4,
        shortest=timedelta(minutes=10), without_gpus=True,
    )  # fmt: skip
    assert (private.nodes, private.cores, private.on_request) == (1, 16, True)
    assert (entry.default, entry.gpus, entry.walltime) == (True, 1, None)


@pytest.mark.parametrize(
    ("needed", "cores"), [("", 8), ("big", 8), ("thin1+thin2", 4), ("big:k80", 8), ("none", 0)]
)
def test_queues_of_torque_have_the_nodes_that_they_need(needed, cores):
    nodes = (
        "fat1\n     np = 8\n     properties = big,k80\n\n"
        "thin1\n     np = 4\n\nthin2\n     np = 4\n\n"
    )
    queue = f"Queue: q\n    resources_default.neednodes = {needed}\n    enabled = True\n"

    (found,) = pbs_queues.partitions(queue, nodes)

    assert found.cores == cores


@pytest.mark.parametrize("large_first", [True, False])
def test_what_goes_with_a_gpu_is_of_the_nodes_that_have_gpus(large_first):
    """A queue may hold nodes with GPUs and larger ones without."""
    lines = [
        "all*|1-00:00:00|2|128|3000000|(null)|up|.",
        "all*|1-00:00:00|4|48|192000|gpu:a100:4|up|.",
    ]
    queue = slurm_queues.partitions("\n".join(lines if large_first else lines[::-1]))[0]

    assert (queue.cores, queue.memory, queue.gpus) == (128, 3_000_000 * 10**6, 4)
    assert share_of_cores(queue, 2) == 24
    assert share_of_memory(queue, 4) <= 192_000 * 10**6


def test_a_queue_of_pbs_is_no_larger_than_what_one_job_may_have():
    nodes = "n1\n     resources_available.ncpus = 64\n     resources_available.mem = 512gb\n"
    queue = (
        "Queue: q\n    resources_max.ncpus = 2\n    resources_max.mem = 4gb\n    enabled = True\n"
    )

    (found,) = pbs_queues.partitions(queue, nodes)

    assert (found.cores, found.memory) == (2, 4 * 2**30)
    assert share_of_cores(found) == 2
    assert share_of_memory(found) <= 4 * 2**30


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu:v100:4(S:0-1)", (4, "v100")),
        ("gpu:4", (4, "")),
        ("gpu:4(S:0)", (4, "")),
        ("gpu:2080ti:4", (4, "2080ti")),
        ("gpu:3090:8(S:0-1),shard:32", (8, "3090")),
        ("gpu:1g.5gb:7,gpu:v100:2", (7, "1g.5gb")),
        ("gpu:a100_1g.5gb:7,gpu:a100:3", (7, "a100_1g.5gb")),
        ("craynetwork:4,gpu:h100:4", (4, "h100")),
        ("(null)", (0, "")),
    ],
)
def test_gpus_are_counted_by_model(gres, gpus):
    assert slurm_queues.gpus_of(gres) == gpus


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("20:00", timedelta(minutes=20)),
        ("1:00:00", timedelta(hours=1)),
        ("7-00:00:00", timedelta(days=7)),
        ("infinite", None),
        ("n/a", None),
        ("1000-00:00:00", None),
    ],
)
def test_time_limits_are_read(text, span):
    assert queue_values.walltime(text) == span


def test_a_partition_of_several_kinds_of_node_is_as_large_as_the_largest():
    text = "gpu*|1:00:00|2|24+|64000+|gpu:k40:2|up|.\ngpu*|1:00:00|1|48|1000|gpu:v100:4|up|."

    (partition,) = slurm_queues.partitions(text)

    assert partition.nodes == 3
    assert (partition.cores, partition.gpus, partition.gpu_model) == (48, 4, "v100")
    assert partition.memory == 64000 * 10**6


@pytest.mark.parametrize(
    ("version", "verdict"), [("slurm 18.08.7", "differs"), ("slurm 20.11.9", "ok")]
)
def test_how_gpus_are_asked_for_is_told_by_the_age_of_slurm(version, verdict):
    told = recognition.compared(Cluster("x", "X", "slurm", host="lab"), version)

    assert [(each.key, each.verdict) for each in told] == [("jobs.gpus", verdict)]
