"""Where the time went: every second between submission and end, once."""

import pytest

from rabaska.domain.runs import Job, Phase, RunState, RunStatus
from rabaska.views.time_spent import in_words, of_chain, remarks, time_spent

ENDED = {"building the environment": 40.0, "staging": 20.0, "loading": 10.0, "training": 300.0}
PARTS = {"waiting for data": 100.0, "saving": 15.0, "validating": 25.0, "logging": 5.0}


def run(*jobs: Job, now: float = 0.0) -> RunStatus:
    return RunStatus("cats-1", "tamia", RunState.RUNNING, jobs=jobs, now=now)


def wall(spent: list[tuple[int, dict[str, float]]]) -> float:
    return sum(seconds for _, each in spent for seconds in each.values())


def test_the_parts_of_a_job_add_up_to_its_wall_clock():
    spent = {**ENDED, **PARTS, "keeping results": 2.0}
    job = Job(1, submitted=1000.0, began=1100.0, ended=1600.0, how="finished",
              phase=Phase("", 1600.0, spent))  # fmt: skip

    told = time_spent(run(job))

    assert told == [(1, pytest.approx({
        "queue": 60.0, "building": 40.0, "staging": 20.0, "loading": 10.0,
        "waiting for data": 100.0, "computing": 300.0, "validating": 25.0, "logging": 5.0,
        "saving": 15.0, "other": 25.0,
    }))]  # fmt: skip
    assert wall(told) == pytest.approx(1600.0 - 1000.0)


def test_a_job_that_trains_computes_in_the_time_that_nothing_else_took():
    phase = Phase("training", 1130.0, {"staging": 20.0, "loading": 10.0}, parts=PARTS)
    told = time_spent(run(Job(1, submitted=1050.0, began=1100.0, phase=phase), now=1400.0))

    assert told[0][1]["computing"] == pytest.approx(300.0 - 30.0 - 145.0)
    assert wall(told) == pytest.approx(350.0)


def test_a_job_that_stages_spends_its_time_there():
    told = time_spent(run(Job(1, began=100.0, phase=Phase("staging", 101.0)), now=160.0))

    assert told == [(1, {"staging": 60.0})]


def test_a_chain_adds_up_from_its_first_submission_to_its_last_end():
    jobs = (
        Job(1, submitted=0.0, began=100.0, ended=200.0, how="time limit",
            phase=Phase("", 200.0, {"training": 90.0, "loading": 8.0})),
        Job(2, submitted=0.0, began=260.0, ended=300.0, how="crashed",
            phase=Phase("", 300.0, {"training": 40.0})),
        Job(3, submitted=500.0, began=510.0, ended=550.0, how="finished",
            phase=Phase("", 550.0, {"training": 39.0})),
    )  # fmt: skip

    told = of_chain(run(*jobs))

    assert told["queue"] == pytest.approx(100.0 + 60.0 + 10.0)
    assert told["between jobs"] == pytest.approx(200.0)
    assert sum(told.values()) == pytest.approx(550.0)


@pytest.mark.parametrize("job", [
    Job(1), Job(1, how="lost", began=5.0), Job(1, began=5.0, ended=4.0, how="crashed"),
    Job(1, began=5.0, ended=9.0, how="finished", phase=Phase("", None, {"training": 100.0})),
])  # fmt: skip
def test_records_that_are_incomplete_or_wrong_never_give_more_than_there_was(job):
    told = time_spent(run(job, now=20.0))

    assert all(seconds >= 0 for _, spent in told for seconds in spent.values())
    assert wall(told) <= 20.0


def test_in_words_only_what_matters_is_told():
    assert in_words({"queue": 7200.0, "computing": 14400.0, "logging": 1.0}) == (
        "queue 2 h (33%), computing 4 h (67%)"
    )
    assert in_words({}) == ""


def test_of_a_chain_the_whole_is_told_too():
    phase = Phase("", 200.0, {"training": 90.0})
    one = Job(1, submitted=0.0, began=100.0, ended=200.0, how="time limit", phase=phase)
    two = Job(2, submitted=0.0, began=210.0, ended=300.0, how="finished", phase=phase)

    assert [remark.label for remark in remarks(run(one))] == ["time of job 1"]
    assert [remark.label for remark in remarks(run(one, two))] == [
        "time of job 2",
        "time of the run",
    ]
