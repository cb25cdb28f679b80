"""When a run will be over, from what one job has shown: pure arithmetic, and what it reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.node.record import metrics
from rabaska.node.record.forecast import (
    Pace,
    Terms,
    asked_for,
    forecast,
    in_one_job,
    pace,
    per_job,
)

MINUTE, HOUR = 60.0, 3600.0


def line(**told):
    """As a watched program writes it, an hour after its first batch."""
    return {
        "job": 1, "pid": 7, "time": 1000.0 + HOUR, "began": 1000.0, "steps": 100, "batches": 100,
        "epochs": 2, "batch": 0, "length": 50, "waiting": 1.0, "batch_size": 4, **told,
    }  # fmt: skip


def seen(**told):
    return Pace(**{"unit": "epoch", "done": 1.0, "at": 50 * MINUTE, "seconds": 50 * MINUTE,
                   "began": 0.0, "total": 100.0, "save_every": 50 * MINUTE, **told})  # fmt: skip


def test_whole_epochs_are_kept_by_a_program_that_saves_at_their_end():
    """4 hours, 5 minutes to start, 50 minutes for an epoch: 4 are kept and not 4.7."""
    terms = Terms(job=1, begun=-5 * MINUTE, start=0.0, seconds=4 * HOUR)

    told = forecast(seen(), terms)

    assert told.per_job == 4
    assert told.jobs == 25
    assert told.stuck == ""


def test_a_program_that_saves_often_loses_little():
    assert per_job(4 * HOUR, 50 * MINUTE, 5 * MINUTE) == pytest.approx(4.8)
    assert per_job(4 * HOUR, 50 * MINUTE, None) == pytest.approx(4.8)
    assert per_job(4 * HOUR, 50 * MINUTE, 0.0) == pytest.approx(4.8)


def test_saves_that_come_nearly_every_second_epoch_keep_pairs():
    assert per_job(5.5 * HOUR, HOUR, 2.04 * HOUR) == 4


def test_what_ends_within_the_job_needs_no_other():
    told = forecast(seen(total=3.0), Terms(4, 0.0, 0.0, 4 * HOUR))

    assert told.jobs == 4
    assert told.finishes == pytest.approx(150 * MINUTE)


def test_the_end_counts_the_time_between_jobs_and_each_start():
    terms = Terms(job=1, begun=0.0, start=0.0, seconds=100.0, between=30.0)

    told = forecast(Pace("epoch", 1.0, 20.0, 10.0, 10.0, total=12.0, save_every=10.0), terms)

    assert (told.per_job, told.jobs) == (9, 2)
    assert told.finishes == pytest.approx(130 + 10 + 3 * 10)


def test_an_epoch_longer_than_a_job_is_told_at_once():
    told = forecast(seen(save_every=None), Terms(1, 0.0, 0.0, 40 * MINUTE))

    assert "one epoch takes 50 min" in told.stuck
    assert "a job has 40 min for training" in told.stuck
    assert "--walltime" in told.hint


def test_the_remedy_says_how_often_to_save_how_long_to_ask_for_and_where():
    known = Terms(1, 0.0, 0.0, 40 * MINUTE, grace=2 * MINUTE, queue="long", longest=2 * HOUR)
    short = known._replace(queue="short", longest=45 * MINUTE)

    told = [forecast(seen(save_every=None, step=0.5), terms).hint for terms in (known, short)]

    assert told[0] == (
        "save every 1000 steps or so, or ask for jobs of 57 min: `--walltime 57m`, "
        "as the queue `long` allows"
    )
    assert told[1] == (
        "save every 1000 steps or so; jobs of 57 min would do, "
        "but the longest queue there, `short`, ends after 45 min"
    )


def test_saves_further_apart_than_a_job_are_told_too():
    told = forecast(seen(seconds=MINUTE), Terms(1, 0.0, 0.0, 40 * MINUTE))

    assert told.jobs is None
    assert "it saves every 50 min" in told.stuck


def test_a_program_that_can_save_at_any_step_is_never_stuck():
    told = forecast(seen(save_every=0.0), Terms(1, 0.0, 0.0, 40 * MINUTE))

    assert told.stuck == ""
    assert told.jobs == 125


@pytest.mark.parametrize(
    ("words", "unit", "number"),
    [
        (["python", "train.py", "--epochs", "40"], "epoch", 40),
        (["python", "train.py", "--epochs=40"], "epoch", 40),
        (["python", "train.py", "trainer.max_epochs=7"], "epoch", 7),
        (["python", "train.py", "--num_train_epochs", "3"], "epoch", 3),
        (["python", "train.py", "--max-steps", "900"], "step", 900),
        (["python", "train.py", "--epochs", "{data}"], "epoch", None),
        (["python", "epochs.py", "40"], "epoch", None),
        (["python", "train.py", "--save-every-epochs", "4"], "epoch", None),
        ([], "epoch", None),
    ],
)
def test_the_command_says_how_many_there_shall_be(words, unit, number):
    assert asked_for(words, unit) == number


def test_a_watched_program_tells_its_pace():
    told = pace([line(batch=25, saves=2, saved=1000.0 + 3000, total=10)], 4.0, [])

    assert told is not None
    assert (told.unit, told.done, told.total) == ("epoch", 6.5, 10)
    assert told.seconds == pytest.approx(HOUR / 2)
    assert told.save_every == pytest.approx(1500)


def test_a_slow_first_batch_is_no_measure_of_the_others():
    told = pace([line(each=2.0)], 0.0, [])

    assert told is not None
    assert told.seconds == 100.0


def test_a_program_that_says_where_it_began_is_believed():
    told = pace([line(first_epoch=7)], 4.0, ["--epochs", "20"])

    assert told is not None
    assert (told.done, told.total) == (9, 20)


def test_a_log_tells_the_pace_of_others():
    lines = [{"job": 1, "time": 130.0, "since": 100.0, "from": 2, "at": 5, "unit": "epoch"}]

    told = pace(lines, 0.0, ["--epochs", "8"])

    assert told is not None
    assert (told.done, told.seconds, told.total) == (5, 10.0, 8)


def test_nothing_is_foretold_from_nothing():
    assert pace([], 0.0, []) is None
    assert pace([line(batches=0, epochs=0)], 0.0, []) is None
    assert pace([{"job": 1, "off": "python -E"}], 0.0, []) is None


def test_the_epoch_of_a_checkpoint_lies_between_two_lines():
    lines = [line(time=100.0, epochs=1, batch=0), line(time=110.0, epochs=1, batch=50)]

    assert metrics.epoch_at(lines, 105.0, 3.0) == pytest.approx(4.5)
    assert metrics.epoch_at(lines, 110.1, 3.0) == 5.0
    assert metrics.epoch_at(lines, 50.0, 3.0) == 3.0


def test_speed_is_that_of_the_last_lines():
    lines = [line(time=1000.0 + 90, steps=10, batches=10, waiting=1.0),
             line(time=1000.0 + 100, steps=30, batches=30, waiting=4.0)]  # fmt: skip

    told = metrics.speed(lines)

    assert told is not None
    assert told["seconds_per_step"] == pytest.approx(0.5)
    assert told["waiting"] == pytest.approx(0.3)
    assert told["samples_per_second"] == pytest.approx(8.0)


@given(
    each=st.floats(1, 1e5),
    every=st.none() | st.floats(1, 1e5),
    usable=st.floats(0, 1e6),
    total=st.integers(1, 300),  # less than a year, beyond which nothing is foretold
)
def test_as_many_jobs_as_are_foretold_are_enough_and_no_fewer(each, every, usable, total):
    terms = Terms(1, 0.0, 0.0, usable)
    told = forecast(Pace("epoch", 0.0, 0.0, each, 0.0, float(total), every), terms)

    kept = per_job(usable, each, every)

    if told.jobs is None:
        assert kept == 0
    elif told.jobs > 1:
        assert (told.jobs - 1) * kept < total * (1 + 1e-6)
        assert (told.jobs - 1) * kept + usable / each >= total * (1 - 1e-6)


def test_nothing_is_foretold_for_a_time_that_nobody_plans_for():
    year = forecast(Pace("epoch", 0.0, 0.0, 86400.0, 0.0, 400.0, None), Terms(1, 0.0, 0.0, 3600.0))

    assert (year.jobs, year.finishes) == (None, None)


def test_an_epoch_that_only_stands_for_no_end_is_not_foretold():
    line = {"time": 100.0, "began": 0.0, "steps": 50, "batches": 50, "length": 10**8, "each": 2.0}

    assert pace([{**line, "epochs": 0, "batch": 50, "pid": 1}], 0.0, []) is None


def test_more_jobs_and_more_saves_are_no_remedy_for_what_begins_again():
    terms = Terms(job=1, begun=0.0, start=0.0, seconds=0.5 * HOUR)
    pace = seen(total=4.0)

    told = in_one_job(forecast(pace, terms), pace, terms, "it loads nothing")

    assert (told.jobs, told.finishes) == (None, None)
    assert told.stuck.endswith("; it loads nothing")
    assert "`--walltime 220m`" in told.hint
    assert "save" not in told.hint
