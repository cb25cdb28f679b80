"""The chain rule, over every history that could ever be written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.node.record import chain_rule
from rabaska.node.record.chain_rule import Job, verdict

ENDS = (
    chain_rule.FINISHED,
    chain_rule.TIME_LIMIT,
    chain_rule.CRASHED,
    chain_rule.KILLED,
    chain_rule.CANCELLED,
    chain_rule.ASKED_TO_GO_ON,
    chain_rule.SUPERSEDED,
    chain_rule.STAGING_FAILED,
    chain_rule.NO_TIME_LEFT,
    chain_rule.LOST,
)
OUTSIDE = (
    chain_rule.KILLED,
    chain_rule.LOST,
    chain_rule.SUPERSEDED,
    chain_rule.CANCELLED,
    chain_rule.ASKED_TO_GO_ON,
)

ends = st.tuples(st.sampled_from(ENDS), st.booleans())
histories = st.lists(ends, max_size=12).map(
    lambda pairs: [Job(n, how, saved) for n, (how, saved) in enumerate(pairs, 1)]
)


def jobs(*ends: tuple[str, bool]) -> list[Job]:
    return [Job(number, how, saved) for number, (how, saved) in enumerate(ends, 1)]


@given(histories, st.booleans(), st.integers(0, 12))
def test_a_finished_run_never_goes_on(history: list[Job], stopped: bool, forgiven: int) -> None:
    assert verdict(history, done=True, stopped=stopped, forgiven=forgiven)[0] == chain_rule.FINISHED


@given(histories, st.integers(0, 12))
def test_a_stopped_run_never_goes_on(history: list[Job], forgiven: int) -> None:
    assert verdict(history, stopped=True, forgiven=forgiven).decision == chain_rule.GIVE_UP


@given(histories)
def test_it_never_goes_on_after_three_jobs_without_progress(history: list[Job]) -> None:
    fruitless = [not job.progressed for job in history[-3:]]

    decision = verdict(history).decision

    if len(fruitless) == 3 and all(fruitless):
        assert decision != chain_rule.GO_ON


@given(st.lists(st.sampled_from(ENDS), max_size=2), st.sampled_from(chain_rule.ITS_OWN_FAULT))
def test_its_own_fault_before_any_progress_ends_the_chain_at_once(
    before: list[str], how: str
) -> None:
    history = jobs(*((earlier, False) for earlier in before), (how, False))

    decided = verdict(history)

    assert decided.decision == chain_rule.GIVE_UP
    assert decided.reason
    assert decided.hint


@given(
    st.lists(st.tuples(st.sampled_from((chain_rule.TIME_LIMIT, chain_rule.KILLED)), st.booleans())),
    st.sampled_from(chain_rule.ITS_OWN_FAULT),
)
def test_what_earlier_jobs_could_do_is_tried_again_but_not_for_ever(
    before: list[tuple[str, bool]], how: str
) -> None:
    """One bad node does not end a chain."""
    good, bad = [*before, (chain_rule.TIME_LIMIT, True)], (how, False)

    assert verdict(jobs(*good, bad)).decision == chain_rule.GO_ON
    assert verdict(jobs(*good, bad, bad)).decision == chain_rule.GO_ON
    assert verdict(jobs(*good, bad, bad, bad)).decision == chain_rule.GIVE_UP


@given(histories, st.sampled_from([how for how in ENDS if how != chain_rule.FINISHED]))
def test_progress_always_goes_on(history: list[Job], how: str) -> None:
    history = [*history, Job(len(history) + 1, how, progressed=True)]

    assert verdict(history).decision == chain_rule.GO_ON


@given(histories)
def test_taking_a_run_up_again_forgives_everything_but_the_finish(history: list[Job]) -> None:
    decision = verdict(history, forgiven=len(history)).decision

    if history and history[-1].how != chain_rule.FINISHED:
        assert decision == chain_rule.GO_ON


@given(st.sampled_from(OUTSIDE), st.sampled_from(OUTSIDE), st.sampled_from(OUTSIDE))
def test_two_interruptions_are_forgiven_and_the_third_is_not(a: str, b: str, c: str) -> None:
    saved = (chain_rule.TIME_LIMIT, True)

    twice = verdict(jobs(saved, (a, False), (b, False)))
    thrice = verdict(jobs(saved, (a, False), (b, False), (c, False)))

    assert twice.decision == chain_rule.GO_ON
    assert thrice.decision == chain_rule.GIVE_UP


def test_interruptions_before_a_resume_are_not_counted() -> None:
    history = jobs((chain_rule.LOST, False), (chain_rule.LOST, False), (chain_rule.LOST, False))

    assert verdict(history, forgiven=2).decision == chain_rule.GO_ON


def test_a_run_without_jobs_has_not_begun() -> None:
    assert verdict([]).decision == chain_rule.NOT_BEGUN


def test_a_running_job_is_left_alone() -> None:
    history = [Job(1, chain_rule.CRASHED, progressed=True), Job(2, chain_rule.RUNNING)]

    assert verdict(history) == chain_rule.ChainVerdict(chain_rule.GO_ON, "job 2 is running")


def test_the_reason_quotes_what_the_job_said() -> None:
    history = [Job(1, chain_rule.CRASHED, reason="the program ended with exit code 7", exit_code=7)]

    assert "exit code 7" in verdict(history).reason


def test_the_pace_of_a_job_that_saved_nothing_makes_reason_and_remedy() -> None:
    slow = Job(
        1, chain_rule.TIME_LIMIT, reason="one epoch takes 3 h", remedy="save every 500 steps"
    )

    decided = verdict([slow])

    assert decided.decision == chain_rule.GIVE_UP
    assert decided.reason == (
        "job 1 reached its time limit and nothing was saved: one epoch takes 3 h"
    )
    assert decided.hint == "save every 500 steps"


@given(
    histories, st.sampled_from([how for how in ENDS if how != chain_rule.FINISHED]), st.booleans()
)
def test_a_job_that_started_over_ends_the_chain_whatever_it_saved(
    history: list[Job], how: str, saved: bool
) -> None:
    over = Job(len(history) + 1, how, saved, started_over="job 2 began again", remedy="load it")

    decided = verdict([*history, over])

    assert decided == chain_rule.ChainVerdict(
        chain_rule.GIVE_UP, "it starts over: job 2 began again", "load it"
    )
    assert verdict([*history, over], forgiven=over.number).decision == chain_rule.GO_ON


def test_saving_more_often_is_no_remedy_for_a_program_that_begins_again() -> None:
    again = chain_rule.Again("it loads nothing")
    too_long = [chain_rule.Job(1, chain_rule.TIME_LIMIT)]
    killed = [chain_rule.Job(number, chain_rule.KILLED) for number in (1, 2, 3)]

    for jobs in (too_long, killed):
        assert "save more often" in chain_rule.verdict(jobs).hint
        assert "save more often" not in chain_rule.verdict(jobs, again=again).hint
    assert "--walltime" in chain_rule.verdict(too_long, again=again).hint
    assert "`rabaska explain`" in chain_rule.verdict(killed).hint


@pytest.mark.parametrize(
    "history",
    [
        [Job(1, chain_rule.STAGING_FAILED, reason="pip found no torch==9")],
        [Job(number, chain_rule.KILLED, reason="killed") for number in (1, 2, 3)],
    ],
)
def test_resume_is_no_remedy_after_a_change_to_the_project(history):
    hint = chain_rule.verdict(history).hint

    assert "`rabaska resume`" in hint
    assert hint.endswith("after a change to code, data or [environment], use `rabaska run`")
