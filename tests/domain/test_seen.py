"""A profile brought up to date by what its cluster showed."""

from datetime import timedelta

import pytest

from rabaska.domain.clusters import Cluster, Observations, Partition, ProfileFact, updated

DAY = timedelta(days=1)
GPU = Partition("gpu", walltime=DAY, nodes=10, gpus=4, gpu_model="a100", cores_per_gpu=12)
PROFILE = Cluster("site", "A site", "slurm", partitions=(GPU,), probe=("software.wheelhouse",))


def seen(**found):
    return Observations(day="2026-11-15", **found)


def test_a_cluster_that_nobody_has_looked_at_is_as_its_profile_says():
    assert updated(PROFILE, None) == PROFILE


def test_limits_of_today_replace_those_of_the_profile_and_nothing_else():
    today = Partition("gpu", walltime=7 * DAY, nodes=12, gpus=8, cores=64)

    (queue,) = updated(PROFILE, seen(partitions=(today,))).partitions

    assert (queue.walltime, queue.nodes, queue.cores) == (7 * DAY, 12, 64)
    assert (queue.gpus, queue.gpu_model, queue.cores_per_gpu) == (4, "a100", 12)


def test_a_queue_that_is_gone_is_no_longer_offered_and_a_kind_of_node_stays():
    kind = Partition("a100-slice", queue="", gpus=1)
    profile = Cluster("site", "A site", "slurm", partitions=(GPU, kind))

    now = updated(profile, seen(partitions=(Partition("other"),)))

    assert now.partitions == (kind,)


def test_a_profile_without_queues_takes_those_of_the_site():
    bare = Cluster("site", "A site", "slurm")

    assert updated(bare, seen(partitions=(GPU,))).partitions == (GPU,)


def test_what_a_profile_is_sure_of_is_not_overruled():
    sure = Cluster("site", "A site", "slurm", wheelhouse=("/ours",), internet=False)
    found = seen(wheelhouse=("/theirs",), internet=True)
    unsure = Cluster(
        "site", "A site", "slurm", wheelhouse=("/ours",), internet=False,
        probe=("software.wheelhouse", "nodes.internet"),
    )  # fmt: skip

    assert (updated(sure, found).wheelhouse, updated(sure, found).internet) == (("/ours",), False)
    assert (updated(unsure, found).wheelhouse, updated(unsure, found).internet) == (
        ("/theirs",),
        True,
    )


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("partitions.gpu.walltime", ["partitions.gpu.walltime"]),
        ("partitions.*.walltime", ["partitions.gpu.walltime", "partitions.cpu.walltime"]),
        (
            "partitions",
            ["partitions.gpu.walltime", "partitions.cpu.walltime", "partitions.gpu.gpus"],
        ),
        ("storage.tiers.project.path", ["storage.tiers.project"]),
        ("jobs.account", ["accounts"]),
        ("nodes.internet", []),
    ],
)
def test_a_key_that_nobody_verified_finds_what_was_found_out_about_it(key, told):
    keys = ["partitions.gpu.walltime", "partitions.cpu.walltime", "partitions.gpu.gpus",
            "storage.tiers.project", "accounts"]  # fmt: skip
    found = seen(facts=tuple(ProfileFact(key, "", "ok") for key in keys))

    assert [fact.key for fact in found.about(key)] == told


def test_an_old_slurm_is_asked_for_gpus_as_it_understands():
    old = seen(
        facts=(ProfileFact("jobs.gpus", "gpus-per-node", "differs", "slurm 18.08 knows gres only"),)
    )

    assert updated(PROFILE, old).gpus_as_gres
    assert not updated(PROFILE, seen()).gpus_as_gres
