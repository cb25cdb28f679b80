"""What a run is doing, and what it used, in words."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rabaska.domain.jobs import JobState, JobStatus, UsedResources
from rabaska.domain.runs import Job, Phase, RunState, RunStatus, Waiting
from rabaska.steps import read_phases
from rabaska.views import phases, used_resources
from rabaska.views.runs import run_view

GB = 10**9
QUEUED = RunStatus("digits-0", "tamia", RunState.QUEUED, reason="Priority", now=1000.0)
RUNNING = RunStatus("digits-0", "tamia", RunState.RUNNING, now=1000.0)


def doing(phase: Phase) -> str:
    return phases.now(replace(RUNNING, jobs=(Job(1, began=900.0, phase=phase),)))


def test_a_run_in_the_queue_says_why_since_when_and_until_when():
    said = phases.now(replace(QUEUED, waiting=Waiting("Priority", 280.0, 1000.0 + 9e8)))

    assert said.startswith("in the queue for 12 min; other jobs come first (Priority); expected ")


def test_a_reason_that_nobody_knows_is_told_as_it_is():
    said = phases.now(replace(QUEUED, waiting=Waiting("FullMoon", 1000.0)))

    assert said == "in the queue; FullMoon"


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        (Phase("staging", 900.0, what="cats", done=GB, total=4 * GB, rate=2e8),
         "staging cats: 1.0 GB of 4.0 GB, 200 MB/s"),
        (Phase("training", 400.0), "training for 10 min"),
        (Phase("loading", 990.0), "loading for 10 s"),
        (Phase("loading", 100.0), "running, no step seen yet for 15 min"),
        (Phase(""), ""),
    ],
)  # fmt: skip
def test_a_job_that_runs_says_what_it_does(phase, said):
    assert doing(phase) == said


def test_a_job_that_has_its_node_and_has_not_begun_builds_its_environment():
    queue = {"7_1": JobStatus(JobState.RUNNING, starts="1970-01-01T01:16:00")}
    report = {"starting": {"id": "7_1", "what": "torch"}, "jobs": []}

    found = read_phases.starting(report, queue, 3600)

    assert found == Phase("building the environment", 960.0, what="torch")
    run = replace(RUNNING, starting=found)
    assert phases.now(run) == "building the environment for 40 s: torch"


def test_a_job_that_has_its_node_and_gave_no_sign_is_allocated():
    found = read_phases.starting({"jobs": []}, {"7": JobStatus(JobState.RUNNING)}, 0)

    assert found is not None
    assert found.phase == "allocated"


def test_a_job_that_its_scheduler_started_four_times_is_not_just_running():
    run = replace(RUNNING, restarts=("its node failed",) * 3)

    remark = next(one for one in phases.remarks(run) if "attempt" in one.label)

    assert remark.label == "attempt 4"
    assert "3 times" in remark.text
    assert "its node failed" in remark.text


def finished(memory: int | None = 64 * GB, peak: int = 5 * GB) -> RunStatus:
    used = UsedResources(3600.0, 7200.0, 4, peak, memory)
    job = Job(1, began=1000.0, ended=4600.0, how="finished", used=used)
    return RunStatus(
        "digits-0", "tamia", RunState.FINISHED, jobs=(job,), walltime=timedelta(hours=3),
        now=5000.0,
        about={"resources": {"memory": memory, "gpus": 2, "nodes": 1, "cores": 4, "tasks": 1}},
    )  # fmt: skip


def test_who_asked_for_much_memory_and_used_little_is_given_the_line():
    numbers, note = used_resources.remarks(finished())

    assert numbers.text == "60 min of 3 h, 2 GPU-hours, 5.0 GB of 64 GB of memory, 50% of its cores"
    assert note.text == "you asked for 64 GB of memory and used 5.0 GB"
    assert '`memory = "8 GB"` in [resources]' in note.hint


def test_who_used_what_was_asked_for_reads_no_note():
    assert len(list(used_resources.remarks(finished(peak=40 * GB)))) == 1
    assert len(list(used_resources.remarks(finished(memory=2 * GB, peak=GB // 10)))) == 1


def test_a_scheduler_that_grants_mebibytes_for_megabytes_lets_nobody_use_more_than_all():
    run = finished(memory=200 * 2**20, peak=209 * 10**6)
    asked = {"resources": {"memory": 200 * 10**6}}

    (numbers, *_) = used_resources.remarks(replace(run, about=asked))

    assert "209 MB of 210 MB of memory" in numbers.text


def test_many_gpu_hours_are_a_plain_number():
    job = replace(finished().jobs[0], ended=1000.0 + 617 * 3600)

    (numbers, *_) = used_resources.remarks(replace(finished(), jobs=(job,)))

    assert "1,234 GPU-hours" in numbers.text


def test_the_memory_of_one_task_as_the_scheduler_counts_it_is_not_that_of_a_node():
    run = finished(peak=5 * GB)
    job = replace(run.jobs[0], how="lost")
    asked = {"resources": {"memory": 64 * GB, "nodes": 1, "tasks": 8}}

    (numbers,) = used_resources.remarks(replace(run, jobs=(job,), about=asked))

    assert "of memory" not in numbers.text


def test_while_a_run_goes_on_nothing_is_said_of_what_it_used():
    run = replace(finished(), state=RunState.RUNNING)

    assert list(used_resources.remarks(run)) == []


def test_a_script_reads_the_same_numbers():
    used = run_view(finished()).used

    assert used is not None
    assert (used.gpu_hours, used.core_hours, used.memory) == (2.0, 4.0, 5 * GB)


def test_a_place_in_the_line_and_restarts_come_from_the_queue():
    waits = JobStatus(JobState.QUEUED, reason="Priority", starts="@5000", place=3, again=2)
    found = read_phases.waiting({}, {"7": waits}, 3600)

    assert found == Waiting("Priority", None, 5000.0, 3)
    assert read_phases.restarts({}, {"7": waits}) == ("it did not say why",) * 2
    assert read_phases.restarts({"restarts": ["its node failed"]}, {"7": waits}) == (
        "its node failed",
    )
    told = replace(QUEUED, waiting=found, restarts=read_phases.restarts({}, {"7": waits}))
    said = [remark.text for remark in phases.remarks(told)]
    assert said[0].startswith("in the queue; place 3 in the line; other jobs come first")
    assert said[1].startswith("its scheduler started this job again 2 times; the last time, it did")
