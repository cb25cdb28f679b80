"""Why jobs wait: reasons as schedulers spell them."""

import pytest

from rabaska.knowledge.queue_reasons import reason_for


@pytest.mark.parametrize(
    "reason",
    [
        "PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig", "BadConstraints",
        "DependencyNeverSatisfied", "JobHeldUser", "JobHeldAdmin", "InvalidAccount", "InvalidQOS",
        "QOSMaxWallDurationPerJobLimit", "AssocMaxWallDurationPerJobLimit", "QOSMaxGRESPerJob",
        "QOSMinGRES", "launch failed requeued held",
        "Can Never Run: Insufficient amount of resource: ngpus (R: 9 A: 4 T: 4)",
        "held by its user (`qrls` lets it go)", "held by an operator",
        "Grid Engine could not start it; `qstat -explain E` on the cluster says why",
    ],
)  # fmt: skip
def test_a_job_that_cannot_start_as_it_is_is_known_as_such(reason):
    known = reason_for(reason)

    assert known is not None
    assert known.never
    assert known.fix


@pytest.mark.parametrize(
    "reason",
    ["QOSMaxJobsPerUserLimit", "AssocGrpCPUMinutesLimit", "QOSGrpGRES", "PartitionDown",
     "ReqNodeNotAvail, May be reserved for other job", "Licenses",
     "Not Running: Queue not started.",
     "job 4761852 violates active HARD MAXPROC limit of 160 for user alice"],
)  # fmt: skip
def test_a_job_that_starts_one_day_is_not_given_up(reason):
    known = reason_for(reason)

    assert known is not None
    assert not known.never


@pytest.mark.parametrize("reason", ["", "Priority", "Resources", "Dependency", "JobArrayTaskLimit"])
def test_the_ordinary_reasons_need_no_words(reason):
    assert reason_for(reason) is None
