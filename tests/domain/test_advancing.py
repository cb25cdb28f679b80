"""Whether jobs of a given length can advance, from how an earlier run saved."""

from datetime import timedelta

import pytest

from rabaska.domain.save_interval import Saving, standstill

MINUTE, HOUR = 60.0, 3600.0


def saving(**seen):
    return Saving("cats-7f3a", "c0de", ("python", "train.py"), **seen)


def found(seen, walltime):
    return standstill(seen, timedelta(seconds=walltime), timedelta(minutes=5))


def test_saves_that_are_further_apart_than_a_job_are_certain():
    told = found(saving(starting=5 * MINUTE, every=50 * MINUTE), 59 * MINUTE)

    assert told.certain
    assert told.why == ("cats-7f3a saved every 50 min, and a job of 59 min has 49 min for training")
    assert told.remedy.endswith("`--walltime 65m`")


def test_a_job_as_long_as_one_that_saved_nothing_is_no_better():
    seen = saving(unsaved=55 * MINUTE)

    assert found(seen, HOUR).certain
    assert "saved nothing in 55 min" in found(seen, HOUR).why
    assert found(seen, HOUR + 1) is None


def test_an_epoch_that_nobody_watched_to_its_end_is_a_doubt():
    told = found(saving(epoch=2 * HOUR), HOUR)

    assert not told.certain
    assert "an epoch of cats-7f3a took 120 min" in told.why or "took 2 h" in told.why


@pytest.mark.parametrize(
    "seen", [saving(every=0.0, epoch=2 * HOUR), saving(every=MINUTE, epoch=2 * HOUR), saving()]
)
def test_what_saves_often_or_was_never_seen_is_let_pass(seen):
    assert found(seen, HOUR) is None


def test_what_begins_again_is_not_told_to_save_more_often():
    told = found(saving(every=50 * MINUTE, begins_again="it loads nothing"), 30 * MINUTE)

    assert "save more often" not in told.remedy
    assert "a longer `--walltime`" in told.remedy
