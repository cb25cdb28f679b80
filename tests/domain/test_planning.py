"""The right queue for a need, with reasons; and no queue where none can do it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.clusters import Cluster, Partition
from rabaska.domain.data_placement import place, shared_folder
from rabaska.domain.queue_choice import Need, outlook
from rabaska.knowledge.gpu_facts import gpus
from rabaska.settings.profile_files import names
from rabaska.settings.profiles import load_cluster

CLUSTERS = {name: load_cluster(name) for name in names() if name != "here"}
GB = 10**9


def hours(number):
    return timedelta(hours=number)


def chosen(cluster, need):
    return outlook(need, CLUSTERS[cluster], gpus()).choice


SDUMONT = {
    "10 minutes on 2 K40": (Need(timedelta(minutes=10), gpus=2, gpu="k40"), "nvidia_dev"),
    "60 h on one V100": (Need(hours(60), gpu="v100"), "sequana_gpu_shared"),
    "8 V100 for 40 h": (Need(hours(40), gpus=8, gpu="v100"), "gdl"),
    "8 V100 for 40 h on any nodes": (Need(hours(40), gpus=8, gpu="v100", spreads=True), "gdl"),
    "20 days on K40": (Need(timedelta(days=20), gpu="k40"), "nvidia_long"),
    "45 minutes on a K40": (Need(timedelta(minutes=45), gpu="k40"), "nvidia_small"),
    "12 h on a K40": (Need(hours(12), gpu="k40"), "nvidia_scal"),
    "40 h on a K40": (Need(hours(40), gpu="k40"), "nvidia"),
    "10 days on a V100": (Need(timedelta(days=10), gpu="v100"), "sequana_gpu_shared"),
}


@pytest.mark.parametrize("case", SDUMONT)
def test_sdumonts_queues_are_chosen_as_its_users_choose_them(case):
    need, queue = SDUMONT[case]

    assert chosen("sdumont", need).queue == queue


def test_a_source_build_may_use_the_k40_and_an_official_one_may_not():
    need = Need(timedelta(minutes=10), gpus=2)
    official = Need(need.total, gpus=2, unfit={"k40": "torch 1.13.1 holds no code for K40"})

    told = outlook(official, CLUSTERS["sdumont"], gpus())

    assert chosen("sdumont", Need(need.total, gpus=2, gpu="k40")).queue == "nvidia_dev"
    assert told.choice.gpu == "v100"
    assert "torch 1.13.1" in str([each for each in told.rejected if each.queue == "nvidia_dev"])


def test_every_queue_is_chosen_kept_in_reserve_or_rejected_with_a_reason():
    told = outlook(Need(hours(60), gpu="v100"), CLUSTERS["sdumont"], gpus())

    seen = [told.choice.queue, *(each.queue for each in told.others)]
    seen += [each.queue for each in told.rejected]
    assert sorted(seen) == sorted(each.name for each in CLUSTERS["sdumont"].partitions)
    assert all(each.reasons for each in told.rejected)
    assert told.choice.reasons


@pytest.mark.parametrize(
    ("need", "nearest"),
    [
        (Need(hours(40), gpus=16, gpu="v100"), "gdl"),
        (Need(timedelta(days=60), gpu="v100", resumes=False), "sequana_gpu_shared"),
        (Need(timedelta(days=40), gpu="k40", resumes=False), "nvidia_long"),
        (Need(timedelta(days=60), gpus=9), "gdl"),  # a chain makes up for its limit
        (Need(timedelta(hours=40), gpus=3, gpu="k40", memory=500 * GB), "nvidia"),
    ],
)
def test_what_no_queue_can_do_is_refused_with_the_nearest_that_can(need, nearest):
    told = outlook(need, CLUSTERS["sdumont"], gpus())

    assert told.choice is None
    assert told.nearest.startswith(f"{nearest} is closest")


def test_several_nodes_are_used_only_by_a_program_that_can():
    alone = Need(hours(10), gpus=16, gpu="v100")
    spread = Need(hours(10), gpus=16, gpu="v100", spreads=True)

    assert chosen("sdumont", alone) is None
    assert chosen("sdumont", spread).nodes == 4
    assert chosen("sdumont", spread).gpus == 4


def test_a_long_training_becomes_jobs_of_a_day_where_the_site_says_so():
    choice = chosen("narval", Need(timedelta(days=5)))

    assert (choice.jobs, choice.walltime) == (6, timedelta(days=1))


def test_jobs_are_long_enough_for_a_program_that_saves_seldom():
    need = Need(timedelta(days=20), stretch=hours(30))
    told = [outlook(need, CLUSTERS[name], gpus()) for name in ("graham", "sdumont")]

    reasons = [reason for each in told[1].rejected for reason in each.reasons]

    assert told[0].choice.walltime == hours(33)
    assert any("it saves every 30 h: no job would make progress" in reason for reason in reasons)


def test_a_program_that_cannot_go_on_gets_one_long_job():
    choice = chosen("narval", Need(timedelta(days=5), resumes=False))

    assert choice.jobs == 1
    assert choice.walltime >= timedelta(days=5)


def test_cores_and_memory_stay_inside_what_goes_with_a_gpu():
    choice = chosen("narval", Need(hours(10), gpus=2, cores=40))

    assert choice.cores == 24
    assert choice.memory == 248 * GB


def test_the_cost_is_the_time_of_training_and_not_of_the_limit():
    choice = chosen("narval", Need(hours(10), gpus=4))

    assert choice.gpu_hours == 40
    assert choice.unit_hours == 160


def test_whole_nodes_are_billed_whole():
    assert chosen("perlmutter", Need(hours(10))).gpu_hours == 40


def test_queues_that_one_must_apply_for_are_never_chosen():
    for each in SDUMONT.values():
        assert chosen("sdumont", each[0]).queue not in ("sequana_gpu", "sequana_gpu_long")


@given(
    total=st.timedeltas(timedelta(minutes=1), timedelta(days=400)),
    count=st.integers(0, 64),
    kind=st.sampled_from(["", "k40", "v100", "h100", "x"]),
    resumes=st.booleans(),
    spreads=st.booleans(),
    name=st.sampled_from(sorted(CLUSTERS)),
)
def test_what_is_chosen_can_be_done(total, count, kind, resumes, spreads, name):
    need = Need(total, gpus=count, gpu=kind, resumes=resumes, spreads=spreads)

    told = outlook(need, CLUSTERS[name], gpus())

    if told.choice is None:
        assert told.nearest or not CLUSTERS[name].partitions
        return
    queue = CLUSTERS[name].partition(told.choice.queue)
    assert told.choice.nodes * told.choice.gpus >= count
    assert told.choice.gpus <= queue.gpus
    assert queue.walltime is None or told.choice.walltime <= queue.walltime
    assert told.choice.jobs * told.choice.walltime >= total
    assert resumes or told.choice.jobs == 1
    assert spreads or told.choice.nodes == 1


def test_a_dataset_goes_into_memory_onto_the_node_or_stays_in_shards():
    small, medium, large = place(
        [("small", 5 * GB), ("medium", 40 * GB), ("large", 900 * GB)], CLUSTERS["narval"],
        CLUSTERS["narval"].partition("a100"), 124 * GB,
    )  # fmt: skip

    assert small.read == "/dev/shm"
    assert "memory" in small.why
    assert medium.read == "$SLURM_TMPDIR"
    assert "shards" in large.why
    assert large.read == large.kept == "$SCRATCH/rabaska"


def test_what_is_too_large_for_memory_is_not_said_to_fit():
    (told,) = place([("d", 50 * GB)], CLUSTERS["helios"], None, 0)

    assert told.read == "$LSCRATCH"
    assert "memory" not in told.why


@pytest.mark.parametrize(
    ("local", "shared"),
    [("/tmp", "/tmp"), ("/scratch/$USER", "/scratch/$USER"), ("$SLURM_TMPDIR", ""), ("", "")],
)
def test_only_a_folder_that_is_the_same_in_every_job_is_shared(local, shared):
    assert shared_folder(replace(CLUSTERS["narval"], local_space=local)) == shared


def test_large_packs_are_spread_over_servers_where_there_are_several():
    (on_lustre,) = place([("d", 50 * GB)], CLUSTERS["sdumont"], None, 0)
    (on_vast,) = place([("d", 50 * GB)], CLUSTERS["nibi"], None, 0)

    assert on_lustre.stripe.startswith("lfs setstripe -S 1m -c 4 ")
    assert on_vast.stripe == ""


def test_a_queue_that_starts_no_jobs_today_is_not_chosen():
    open_queue = Partition("batch", hours(1))
    closed = Partition("long", hours(100), closed="it starts no jobs: started = False")
    cluster = Cluster("x", "X", "torque", partitions=(open_queue, closed))

    told = outlook(Need(hours(2), gpus=0), cluster, gpus())

    assert told.choice.queue == "batch"
    assert told.rejected[0].reasons == ("it starts no jobs: started = False",)


@pytest.mark.parametrize(("without", "chosen"), [(True, "batch"), (False, None)])
def test_a_queue_with_gpus_takes_a_job_without_where_it_says_so(without, chosen):
    queue = Partition("batch", hours(1), gpus=2, without_gpus=without)
    cluster = Cluster("x", "X", "torque", partitions=(queue,))

    told = outlook(Need(hours(1), gpus=0), cluster, gpus())

    assert (told.choice.queue if told.choice else None) == chosen
