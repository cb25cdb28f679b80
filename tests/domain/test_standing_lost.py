"""What is said of a run whose last job left no record of its own."""

from dataclasses import replace

import pytest

from rabaska.domain.jobs import JobState, JobStatus, UsedResources
from rabaska.domain.run_state import Facts, judged_state, with_names
from rabaska.domain.runs import RunState

LOST = Facts(
    done=False, stop=False, decision="go on", reason="", holder_alive=None, submitted=True,
    submitted_ago=3600.0, queue={}, last_id="7_2", last_is_open=True,
)  # fmt: skip


def ended_as(state, spelled=""):
    return {"7_1": JobStatus(JobState.TIMEOUT), "7_2": JobStatus(state, spelled)}


@pytest.mark.parametrize(
    ("state", "spelled", "said"),
    [
        (JobState.TIMEOUT, "TIMEOUT", "time limit"),
        (JobState.NODE_FAILED, "NODE_FAIL", "node of its last job failed"),
        (JobState.PREEMPTED, "PREEMPTED", "was preempted"),
        (JobState.CANCELLED, "CANCELLED by 1000", "cancelled at the scheduler"),
    ],
)
def test_the_scheduler_tells_how_a_job_ended_that_left_no_record(state, spelled, said):
    stands = judged_state(replace(LOST, queue=ended_as(state, spelled)))

    assert stands.state is RunState.INTERRUPTED
    assert said in stands.reason


def test_a_job_that_the_scheduler_ended_for_its_memory_names_the_peak_and_the_line():
    used = UsedResources(memory=3 * 10**9, memory_limit=4 * 10**9)
    queue = {"7_2": JobStatus(JobState.FAILED, "OUT_OF_MEMORY", used=used)}

    stands = judged_state(replace(LOST, queue=queue, run="digits-0"))

    assert stands.state is RunState.FAILED
    assert "3.0 GB of 4.0 GB" in stands.reason
    assert '`memory = "6 GB"`' in stands.hint


def test_the_jobs_own_record_outweighs_what_the_scheduler_says():
    queue = ended_as(JobState.CANCELLED, "CANCELLED")
    stands = judged_state(replace(LOST, queue=queue, decision="give up", reason="it crashed"))

    assert (stands.state, stands.reason) == (RunState.FAILED, "it crashed")


def test_a_job_of_which_nobody_knows_anything_is_not_done():
    stands = judged_state(LOST)

    assert stands.state is RunState.INTERRUPTED
    assert "left no record" in stands.reason


def test_a_job_that_gives_signs_of_life_is_running_though_the_queue_is_silent():
    stands = judged_state(replace(LOST, queue=None, heard=True))

    assert stands.state is RunState.RUNNING
    assert "did not answer" in stands.reason


def test_a_silent_queue_and_a_silent_job_are_unknown():
    assert judged_state(replace(LOST, queue=None)).state is RunState.UNKNOWN


def test_a_refused_submission_is_told_in_the_schedulers_words():
    facts = replace(LOST, submitted=False, refused="Invalid account", last_is_open=False)

    stands = judged_state(facts)

    assert stands.state is RunState.INTERRUPTED
    assert "refused it: Invalid account" in stands.reason


@pytest.mark.parametrize(("silent", "said"), [(3600.0, "no sign of life"), (30.0, "")])
def test_a_running_job_that_is_silent_is_told(silent, said):
    queue = {"7_2": JobStatus(JobState.RUNNING)}

    stands = judged_state(replace(LOST, queue=queue, silent=silent))

    assert stands.state is RunState.RUNNING
    assert stands.reason.startswith(said)
    assert bool(stands.reason) == bool(said)


def test_a_command_without_a_name_gets_that_of_the_run():
    advice = "fix that, then `rabaska resume`; `rabaska fetch --to x`; `rabaska clean --on CLUSTER`"

    assert with_names(advice, "cats-7f3a", "narval") == (
        "fix that, then `rabaska resume cats-7f3a`; `rabaska fetch cats-7f3a --to x`; "
        "`rabaska clean --on narval`"
    )
    assert with_names("`rabaska resume RUN`, or `rabaska run`", "a-1", "x") == (
        "`rabaska resume a-1`, or `rabaska run`"
    )
