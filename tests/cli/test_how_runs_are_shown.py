"""A run's status, as the lines that a person reads."""

from dataclasses import replace

from rabaska.cli.render_status import many_runs, one_run
from rabaska.domain.runs import Job, RunState, RunStatus, Staged
from rabaska.views.runs import run_view

JOBS = (
    Job(1, id="7_1", host="n1", began=100.0, ended=160.0, how="time limit", signal=15),
    Job(2, id="7_2", host="n1", began=170.0, how="lost", first_step=5, last_step=9),
    Job(3, id="7_3", host="n2", began=200.0, first_step=6, last_step=12, steps_redone=4),
)
RUN = RunStatus("cats-7f3a", "here", RunState.RUNNING, jobs_requested=5, jobs=JOBS, now=230.0)


def rows(run=RUN):
    return {
        line.split()[0]: line
        for line in one_run(run_view(run), colours=False)
        if line[:1].isdigit()
    }


def test_each_job_has_a_row_with_how_long_it_took_and_how_it_ended():
    assert "60 s" in rows()["1"]
    assert "time limit (signal 15)" in rows()["1"]
    assert "30 s" in rows()["3"]
    assert "running" in rows()["3"]
    assert "6-12" in rows()["3"]


def test_nobody_claims_to_know_how_long_a_lost_job_took():
    assert " s " not in rows()["2"]
    assert "lost" in rows()["2"]


def test_processes_that_a_finished_program_left_running_are_told_with_a_hint():
    finished = replace(RUN, state=RunState.FINISHED, left_running=2)

    lines = list(one_run(run_view(finished), colours=False))

    assert any("ended 2 processes that the program left running" in line for line in lines)
    assert any("end the script with `wait`" in line for line in lines)


def test_it_is_said_where_the_data_is():
    data = (
        Staged("cats", 1_200_000_000, "in memory", 3.2),
        Staged("dogs", 9, "on a disk", 0, True),
    )

    lines = list(one_run(run_view(replace(RUN, data=data)), colours=False))

    assert "data: cats (1.2 GB) in memory, staged in 3 s" in lines
    assert "data: dogs (9 bytes) on a disk, still being copied while the program runs" in lines


def test_what_shows_that_a_run_starts_over_stays_after_it_was_cancelled():
    over = Job(2, how="cancelled", started_over="job 2 began again at step 0")
    cancelled = replace(RUN, state=RunState.CANCELLED, reason="you cancelled it", jobs=(over,))

    resumed = replace(RUN, jobs=(over, Job(3)))

    for run in (cancelled, resumed):
        assert "it starts over: job 2 began again at step 0" in one_run(
            run_view(run), colours=False
        )
    assert not replace(resumed, state=RunState.FINISHED).starts_over


def test_a_beginning_that_nobody_knows_is_a_note():
    why = "job 2 was not given the checkpoint, and whether it started over is not known"
    run = replace(RUN, jobs=(Job(1), Job(2, beginning_not_known=why)))

    assert f"note: {why}" in one_run(run_view(run), colours=False)


def test_an_overview_has_a_row_for_each_run():
    lines = many_runs([RUN] * 2, 300.0, colours=False)

    assert len(lines) == 3
    assert "3/5" in lines[1]
