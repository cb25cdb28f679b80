"""How a run stands, whatever its records and the queue say."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.jobs import JobState, JobStatus
from rabaska.domain.run_state import Facts, Submission, judged_state
from rabaska.domain.runs import RunState

FRESH = Facts(
    done=False, stop=False, decision="go on", reason="", holder_alive=False,
    submitted=True, submitted_ago=3600.0, queue={},
)  # fmt: skip


def queue(*states):
    return {f"7_{number}": JobStatus(state) for number, state in enumerate(states, 1)}


def test_the_done_record_outweighs_everything_else():
    facts = replace(FRESH, done=True, stop=True, queue=queue(JobState.RUNNING))

    assert judged_state(facts).state is RunState.FINISHED


def test_a_queue_that_does_not_answer_is_unknown_and_never_done():
    assert judged_state(replace(FRESH, queue=None)).state is RunState.UNKNOWN


def test_a_run_whose_jobs_are_used_up_is_interrupted_and_can_be_resumed():
    stands = judged_state(replace(FRESH, queue=queue(JobState.TIMEOUT, JobState.TIMEOUT)))

    assert stands.state is RunState.INTERRUPTED
    assert "jobs have run" in stands.reason
    assert "resume" in stands.hint


def test_a_run_whose_keeper_was_killed_says_so():
    stands = judged_state(replace(FRESH, queue=queue(JobState.LOST, JobState.NEVER_RAN)))

    assert stands.state is RunState.INTERRUPTED
    assert "killed or the computer was restarted" in stands.reason


def test_a_job_submitted_a_moment_ago_is_queued_though_the_queue_does_not_show_it():
    stands = judged_state(replace(FRESH, decision="not begun", submitted_ago=2.0))

    assert stands.state is RunState.QUEUED


def test_a_run_that_was_never_submitted_says_so():
    stands = judged_state(replace(FRESH, decision="not begun", submitted=False))

    assert stands.state is RunState.INTERRUPTED
    assert "never submitted" in stands.reason


def test_no_scheduler_is_said_to_be_silent_that_was_not_asked():
    made = replace(
        FRESH, decision="not begun", submitted=False, submission=Submission("under way", 1.0)
    )

    assert judged_state(made).reason == "it was made 1 s ago, and is not submitted yet"


@pytest.mark.parametrize(
    ("known", "state", "words"),
    [
        ("under way", RunState.SUBMITTING, "sbatch has not answered for 40 s on login2"),
        ("lost", RunState.SUBMITTING, "searching the queue for its job: Unable to contact"),
        ("not taken", RunState.INTERRUPTED, "the queue has no job of it"),
    ],
)
def test_a_submission_without_an_answer_is_a_state_of_its_own(known, state, words):
    said = "" if known == "under way" else "Unable to contact\n"
    unanswered = Submission(known, 40.2, "/usr/bin/sbatch", "login2", said)
    first = replace(FRESH, decision="not begun", submitted=False, submission=unanswered)
    resumed = replace(FRESH, submission=unanswered)

    for facts in (first, resumed):
        assert judged_state(facts).state is state
        assert words in judged_state(facts).reason
    cancelled = judged_state(replace(first, stop=True)).state
    assert cancelled is (RunState.STOPPING if unanswered.may_come else RunState.CANCELLED)
    assert judged_state(replace(resumed, queue=queue(JobState.RUNNING))).state is RunState.RUNNING


@pytest.mark.parametrize(
    ("alive", "state"), [(True, RunState.STOPPING), (False, RunState.CANCELLED)]
)
def test_a_cancelled_run_is_stopping_as_long_as_its_program_lives(alive, state):
    assert judged_state(replace(FRESH, stop=True, holder_alive=alive)).state is state


def test_giving_up_is_a_failure_with_its_reason():
    stands = judged_state(replace(FRESH, decision="give up", reason="exit code 1"))

    assert (stands.state, stands.reason) == (RunState.FAILED, "exit code 1")


def test_a_state_nobody_knows_is_shown_as_the_cluster_spelled_it():
    odd = {"7_1": JobStatus(JobState.UNKNOWN, spelled="BLOOMING")}

    stands = judged_state(replace(FRESH, queue=odd))

    assert stands.state is RunState.UNKNOWN
    assert "BLOOMING" in stands.reason


facts = st.builds(
    Facts,
    done=st.just(False),
    stop=st.booleans(),
    decision=st.sampled_from(["go on", "give up", "not begun"]),
    reason=st.text(),
    holder_alive=st.sampled_from([True, False, None]),
    submitted=st.booleans(),
    submitted_ago=st.floats(0, 1e6),
    queue=st.none() | st.dictionaries(st.text(), st.builds(JobStatus, st.sampled_from(JobState))),
)


@given(facts)
def test_without_a_done_record_no_run_is_ever_finished(facts):
    assert judged_state(facts).state is not RunState.FINISHED


@given(facts)
def test_a_live_holder_is_never_called_over(facts):
    if facts.holder_alive:
        assert not judged_state(facts).state.over


def test_a_cancelled_run_whose_queue_does_not_answer_may_still_wait_there():
    stands = judged_state(replace(FRESH, stop=True, queue=None))

    assert stands.state is RunState.STOPPING
    assert "did not answer" in stands.reason
