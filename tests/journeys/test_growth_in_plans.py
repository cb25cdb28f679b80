"""What the plan of a run says of jobs that the run may add by itself."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rabaska.domain.jobs import JobSpec, Resources
from rabaska.domain.projects import Chain, Project
from rabaska.node.record.plan import LongestQueue
from rabaska.remote.place import Nowhere
from rabaska.settings.profiles import load_cluster
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.plan_run import growth, longest

RESOURCES = Resources(timedelta(hours=3), gpus=1)
PROJECT = Project("cats", Path("/cats"), ("python", "train.py", "{checkpoint}"), RESOURCES)
SPEC = JobSpec("cats-7f3a", RESOURCES, "/store/runs/cats-7f3a/logs", jobs=3)


def planned(name, **chain):
    cluster = load_cluster(name)
    there = ConnectedCluster(cluster, Nowhere(""), "/store", "python3", Path("node.pyz"))
    return growth(replace(PROJECT, chain=Chain(jobs=3, **chain)), SPEC, there)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("narval", "--dependency=afterany:{after} /store/runs/cats-7f3a/job-more.sh"),
        ("here", "here more --queue /store/queue --mark {submission} {after}"),
    ],
)
def test_one_more_job_is_submitted_after_the_one_that_does_so(name, words):
    told = planned(name)

    assert told.at_most is None
    assert " ".join(told.words).endswith(words)


def test_who_asked_for_so_many_jobs_gets_no_more_but_those_that_were_lost_again():
    assert planned("narval", at_most=3).at_most == 3
    assert planned("narval", at_most=3).words == planned("narval").words


def test_where_no_job_may_submit_another_the_plan_says_so():
    told = planned("trillium-gpu", at_most=9)

    assert told.words == ()
    assert told.why_not == "no job may submit another on trillium-gpu"


def test_the_longest_queue_is_told_only_where_all_are_known():
    known = load_cluster("sdumont")
    told = longest(known, RESOURCES)
    doubtful = replace(known.partitions[0], name="who knows", gpus=1, walltime=None)

    assert told == LongestQueue("sequana_gpu_long", timedelta(days=31).total_seconds())
    assert (
        longest(replace(known, partitions=(*known.partitions, doubtful)), RESOURCES)
        == LongestQueue()
    )
