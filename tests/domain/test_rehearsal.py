"""Verdicts of rehearsals, from curves that are known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain import rehearsal
from rabaska.domain.rehearsal import Interrupted, Saved, Stretch, Used, judge
from rabaska.node.record.plan import ASK, KILL, KILL_WHILE_SAVING
from rabaska.steps.draw_curves import letters, picture

ALONE = {step: 1 / step for step in range(1, 41)}
WHOLE = Saved(readable=True, optimizer=True, scheduler=True, random=True)
USED = Used(optimizer="train.py, line 3", scheduler="train.py, line 4")


def steps(first, last, *, wrong_from=None, by=0.1):
    return {
        step: ALONE[step] * (1 + by if wrong_from is not None and step >= wrong_from else 1)
        for step in range(first, last + 1)
    }


def cut_at_20(after, **about):
    before = Stretch(1, steps(1, 23), how=KILL, saved=True)
    return Interrupted("tiny-1", (before, Stretch(2, after, resumed_from="last.pt", **about)))


def names(verdict):
    return [fault.name for fault in verdict.faults]


def test_a_run_that_made_its_last_steps_again_with_the_same_losses_is_exact():
    verdict = judge(ALONE, [cut_at_20(steps(21, 40))], WHOLE, USED)

    assert (verdict.word, verdict.compared, verdict.first) == ("exact", 40, None)


@pytest.mark.parametrize(
    ("after", "saved", "used", "expected"),
    [
        (steps(21, 40, wrong_from=22), Saved(readable=True, scheduler=True), USED, ["optimizer"]),
        (steps(21, 40, wrong_from=22), Saved(readable=True, optimizer=True), USED, ["scheduler"]),
        (steps(21, 40, wrong_from=21), WHOLE, Used(order="train.py, line 9"), ["data order"]),
        (
            steps(21, 40, wrong_from=21),
            Saved(readable=True),
            Used(random="train.py, line 9"),
            ["random state"],
        ),
        (steps(1, 40, wrong_from=1), WHOLE, USED, ["place lost", "unknown"]),
        (steps(1, 40), WHOLE, USED, ["not taken up"]),
        (steps(21, 40, wrong_from=22), WHOLE, USED, ["unknown"]),
    ],
)
def test_what_is_broken_is_told_from_the_losses_the_checkpoint_and_the_source(
    after, saved, used, expected
):
    verdict = judge(ALONE, [cut_at_20(after)], saved, used)

    assert (verdict.word, names(verdict)) == ("broken", expected)


def test_a_difference_as_small_as_rounding_is_close():
    after = steps(21, 40, wrong_from=30, by=1e-6)

    verdict = judge(ALONE, [cut_at_20(after)], WHOLE, USED)

    assert (verdict.word, verdict.first.step) == ("close", 30)
    assert verdict.largest.relative == pytest.approx(1e-6, rel=1e-3)


def test_a_program_that_differs_at_each_start_is_close_when_a_cut_makes_it_no_worse():
    before = Stretch(1, steps(1, 23, wrong_from=1, by=0.05), how=KILL, saved=True)
    after = Stretch(2, steps(21, 40, wrong_from=21, by=0.06), resumed_from="last.pt")

    runs = [Interrupted("tiny-1", (before, after))]

    verdict = judge(ALONE, runs, WHOLE, USED)
    weights_only = judge(ALONE, runs, Saved(readable=True, scheduler=True), USED)

    assert (verdict.word, names(verdict), verdict.first.step) == ("close", ["not seeded"], 1)
    assert (weights_only.word, names(weights_only)) == ("broken", ["not seeded", "optimizer"])


def test_a_program_without_checkpoints_is_broken_though_it_ends_the_same():
    stretches = (Stretch(1, steps(1, 23), how=KILL), Stretch(2, steps(1, 40)))

    verdict = judge(ALONE, [Interrupted("tiny-1", stretches)], Saved(), USED)

    assert (verdict.word, names(verdict), verdict.first) == ("broken", ["never saves"], None)


def test_the_only_checkpoint_torn_by_a_kill_is_broken_though_it_ends_the_same():
    before = Stretch(1, steps(1, 23), how=KILL_WHILE_SAVING, saved=True)
    after = Stretch(2, steps(1, 40), lost="checkpoints/last.pt", saved=True)

    verdict = judge(ALONE, [Interrupted("tiny-1", (before, after))], WHOLE, USED)

    assert (verdict.word, names(verdict)) == ("broken", ["half-written"])


def test_the_only_checkpoint_damaged_on_purpose_is_advice():
    before = Stretch(1, steps(1, 23), how=KILL, saved=True, damaged=True)
    after = Stretch(2, steps(1, 40), saved=True)

    verdict = judge(ALONE, [Interrupted("tiny-1", (before, after))], WHOLE, USED)

    assert verdict.word == "exact"
    assert "the only one, so the run started over" in verdict.advice[0]


def test_a_program_that_fails_when_it_goes_on_is_broken_unless_its_checkpoint_was_damaged():
    before = Stretch(1, steps(1, 23), how=KILL, saved=True)
    after = Stretch(2, {}, resumed_from="last.pt", failed="KeyError: 'epoch'")
    spoilt = Stretch(1, steps(1, 23), how=KILL, saved=True, damaged=True)

    broken = judge(ALONE, [Interrupted("tiny-1", (before, after))], WHOLE, USED)
    exact = judge(ALONE, [Interrupted("tiny-1", (spoilt, after))], WHOLE, USED)

    assert (broken.word, broken.faults[0].place) == ("broken", "KeyError: 'epoch'")
    assert exact.word == "exact"
    assert "cannot be detected" in exact.advice[0]


def test_equal_losses_with_other_weights_at_the_end_are_close():
    run = cut_at_20(steps(21, 40))

    verdict = judge(ALONE, [Interrupted("x", run.stretches, same_end=False)], WHOLE, USED)

    assert verdict.word == "close"


@given(st.integers(1, 12), st.integers(0, 10**6), st.booleans())
def test_every_cut_that_was_asked_for_is_planned_inside_the_run(count, seed, finished):
    course = rehearsal.Course(range(10, 1000, 10), took=rehearsal.timedelta(60), finished=finished)

    planned = rehearsal.planned(course, count, seed)

    last = [] if finished else [990] * len(planned)
    asked = [cut for run in planned for cut in run if cut.step not in last]
    assert len(asked) == count
    assert all(100 < cut.step <= cut.latest < 900 for cut in asked)
    assert all([c.step for c in run] == sorted(c.step for c in run) for run in planned)
    assert planned == rehearsal.planned(course, count, seed)


def test_four_cuts_are_of_every_kind_and_one_of_them_damages():
    course = rehearsal.Course(range(100), took=rehearsal.timedelta(60), finished=True)

    every = [cut for run in rehearsal.planned(course, 4, seed=1) for cut in run]

    assert {cut.how for cut in every} == {KILL, ASK, KILL_WHILE_SAVING}
    assert [cut.damage for cut in every].count(True) == 1


CURVES = st.dictionaries(
    st.integers(0, 10**9), st.floats(-1e30, 1e30, allow_nan=False), min_size=1, max_size=50
)


@given(CURVES, st.lists(CURVES, max_size=3))
def test_any_curves_can_be_drawn(reference, others):
    drawn = letters(reference, others)

    assert len(drawn) == 14
    assert picture(reference, others).count("<polyline") == 1 + len(others)
