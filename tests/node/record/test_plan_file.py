"""run.json holds what a plan says, and is read however little of it is there."""

import pytest
from tests.node.made_runs import PLAN

from rabaska.node.record import plan

REQUEST = plan.JobRequest(
    resources=plan.RequestedResources(walltime=3600.0, gpus=2, gpu_model="a100", memory=2**30),
    account="def-prof",
    features=["big"],
    setup=["module load python"],
    longest=plan.LongestQueue("long", 86400.0),
)
ORIGIN = plan.Origin("digits", "/home/ada/digits", "narval", "slurm", "2026-11-18T03:00:00+00:00")


def test_what_is_written_is_read():
    written = PLAN._replace(origin=ORIGIN, request=REQUEST)
    read = plan.from_json(plan.to_json(written))

    assert read.origin == ORIGIN
    assert read.request._replace(native=(), unmet=()) == REQUEST
    assert plan.to_json(written)["about"]["resources"]["gpu_model"] == "a100"


@pytest.mark.parametrize(
    "about", [{}, {"resources": 5, "longest": None, "features": "big", "project": None}]
)
def test_what_is_missing_or_damaged_of_it_counts_as_not_said(about):
    read = plan.from_json({**plan.to_json(PLAN), "about": about})

    assert (read.origin, read.request) == (plan.Origin(), plan.JobRequest())


@pytest.mark.parametrize("about", [5, [], None])
def test_a_plan_whose_about_is_no_object_is_damaged(about):
    with pytest.raises(ValueError, match="`about` cannot be"):
        plan.from_json({**plan.to_json(PLAN), "about": about})
