"""What a job notes of its phases, and what is read of one whose agent has not begun."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_runs import begin_job, make_run

from rabaska.node.login import job_reports, status_query
from rabaska.node.record import chain_rule, events, jobs, phases, resume_evidence, scheduler_output
from rabaska.node.record.phases import PhaseLog
from rabaska.node.record.run_folder import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    made = make_run(tmp_path)
    begin_job(made)
    return made


def test_a_phase_is_noted_with_what_the_others_took(run: RunFolder) -> None:
    log = PhaseLog(run, 1)

    log.spent(phases.BUILDING, 41.0)
    log.enter(phases.STAGING)
    log.enter(phases.LOADING)

    told = phases.read(run, 1)
    assert told is not None
    assert told["phase"] == phases.LOADING
    assert set(told["spent"]) == {phases.BUILDING, phases.STAGING}
    assert told["spent"][phases.BUILDING] == 41.0


def test_bytes_and_rate_of_what_is_staged_are_noted(run: RunFolder) -> None:
    log = PhaseLog(run, 1)
    log.enter(phases.STAGING)

    log.moved("cats", 10, 100)  # too soon after the last note
    log.moved("cats", 100, 100)

    told = phases.read(run, 1)
    assert told is not None
    assert (told["what"], told["done"], told["total"]) == ("cats", 100, 100)
    assert told["rate"] > 0


def test_the_rate_of_a_dataset_counts_from_the_end_of_the_one_before(run: RunFolder) -> None:
    log = PhaseLog(run, 1)
    log.enter(phases.STAGING)
    time.sleep(0.4)
    log.moved("cats", 1000, 1000)
    time.sleep(0.1)

    log.moved("dogs", 1000, 1000)

    told = phases.read(run, 1)
    assert told is not None
    assert 5000 < told["rate"] < 10000


def test_an_output_of_the_scheduler_that_vanishes_meanwhile_is_no_crash(run: RunFolder) -> None:
    logs = Path(run.logs)
    logs.mkdir(exist_ok=True)
    (logs / "scheduler-7.out").symlink_to("gone")

    assert phases.starting(run) == {"id": "7", "what": ""}


def test_after_its_end_a_job_is_in_no_phase(run: RunFolder) -> None:
    log = PhaseLog(run, 1)
    log.enter(phases.TRAINING)
    log.end()

    told = phases.read(run, 1)

    assert told is not None
    assert told["phase"] == ""
    assert phases.TRAINING in told["spent"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"phase": 3}', '{"phase": "x", "spent": {"y": "z"}}']
)
def test_a_damaged_note_makes_nothing_fail(run: RunFolder, text: str) -> None:
    Path(run.phase(1)).write_text(text)

    told = phases.read(run, 1)

    assert told is None or told["spent"] == {}


def test_who_lost_the_run_notes_nothing(run: RunFolder) -> None:
    PhaseLog(run, 1, may_write=lambda: False).enter(phases.STAGING)

    assert phases.read(run, 1) is None


def test_a_script_that_runs_before_its_agent_builds_its_environment(run: RunFolder) -> None:
    output = Path(scheduler_output.path_of(run, "99"))
    output.write_text("Collecting numpy\n  Downloading torch-2.1-cp311.whl (700 MB)\n")

    assert phases.starting(run) == {"id": "99", "what": "torch-2.1-cp311.whl (700 MB)"}


def test_a_job_that_has_begun_is_not_starting(run: RunFolder) -> None:
    begun = json.loads(Path(run.begun(1)).read_text())
    Path(scheduler_output.path_of(run, begun["id"])).write_text("")

    assert phases.starting(run) is None


def test_each_time_the_scheduler_started_a_job_again_is_counted(run: RunFolder) -> None:
    lost = "slurmstepd: error: *** JOB 9 ON c1 CANCELLED AT 2026-11-15T21:05:27 DUE TO {} ***\n"
    output = Path(scheduler_output.path_of(run, "9"))
    output.write_text(lost.format("NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS") * 3
                      + lost.format("PREEMPTION"))  # fmt: skip

    told = phases.restarts(run)

    assert told == ["its node failed"] * 3 + ["it was preempted by another job"]


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=9.batch. Some of the step tasks "
        "have been OOM Killed.",
        "slurmstepd: error: Step 9.0 exceeded memory limit (2097152 > 1048576), being killed",
        "=>> PBS: job killed: mem 1060kb exceeded limit 1024kb",
        "=>> PBS: job killed: vmem 1060kb exceeded limit 1024kb",
        "Cgroup mem limit exceeded: oom-kill:constraint=CONSTRAINT_MEMCG",
    ],
)
def test_a_job_killed_with_its_agent_for_its_memory_ends_the_chain(
    run: RunFolder, line: str
) -> None:
    begun = json.loads(Path(run.begun(1)).read_text())
    Path(scheduler_output.path_of(run, begun["id"])).write_text(f"step 1\n{line}\n")

    verdict = resume_evidence.verdict(run, None, lambda: None, last_is_over=True)

    assert verdict.decision == chain_rule.GIVE_UP
    assert line in verdict.reason
    assert "memory =" in verdict.hint


def test_a_program_that_was_killed_out_of_sight_is_explained_by_its_scheduler(
    run: RunFolder,
) -> None:
    fields = dict.fromkeys(jobs.Ended._fields)
    fields.update(job=1, id="12_1", how=chain_rule.KILLED, reason="killed", signal=9)
    jobs.write_ended(run, jobs.Ended(**fields))
    line = "slurmstepd-c1: error: Detected 1 oom-kill event(s) in StepId=12.batch."
    Path(scheduler_output.path_of(run, "12_1")).write_text(line)

    verdict = resume_evidence.verdict(run, None, lambda: None)

    assert verdict.decision == chain_rule.GIVE_UP
    assert line in verdict.reason


@pytest.mark.parametrize("name", ["12.control.OU", "cats-7f3a.o12"])
def test_a_job_that_pbs_asked_to_end_for_its_memory_ends_the_chain(
    run: RunFolder, name: str
) -> None:
    fields = dict.fromkeys(jobs.Ended._fields)
    fields.update(job=1, id="12", how=chain_rule.KILLED, reason="told to end", signal=15)
    jobs.write_ended(run, jobs.Ended(**fields))
    before = status_query.mark_of(run), resume_evidence.verdict(run, None, lambda: None).decision
    line = "=>> PBS: job killed: mem 304740kb exceeded limit 293888kb"

    Path(run.logs, name).write_text(f"{line}\n")

    verdict = resume_evidence.verdict(run, None, lambda: None)
    assert before[1] == chain_rule.GO_ON
    assert verdict.decision == chain_rule.GIVE_UP
    assert line in verdict.reason
    assert status_query.mark_of(run) != before[0], "a report from before is not used again"


def test_a_job_that_was_queued_again_and_lives_is_not_over(run: RunFolder) -> None:
    begun = json.loads(Path(run.begun(1)).read_text())
    Path(scheduler_output.path_of(run, begun["id"])).write_text("Detected 1 oom_kill event\n")
    Path(run.heartbeat(1)).touch()

    assert job_reports.ended_for_memory(run, 1, None) == ""
    assert job_reports.ended_for_memory(run, 1, alive=False)


def test_a_folder_that_is_watched_tells_of_an_event_within_two_seconds(
    run: RunFolder, zipapp: Path
) -> None:

    words = [sys.executable, str(zipapp), "watch", run.path]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline() == "watching\n"
        events.append(run, 1, "started")
        began = time.monotonic()

        assert watching.stdout.readline() == "changed\n"
        assert time.monotonic() - began < 2
        watching.terminate()


def metrics_line(run: RunFolder, **told: object) -> None:
    with open(run.metrics, "a", encoding="utf-8") as stream:
        line = {"job": 1, "pid": 7, "time": 50.0, "began": 1.0, "steps": 3, "batches": 3}
        stream.write(json.dumps(dict(line, **told)) + "\n")


def test_a_program_that_writes_a_checkpoint_is_saving_until_its_next_line(run: RunFolder) -> None:
    PhaseLog(run, 1).enter(phases.TRAINING)
    metrics_line(run)
    assert (phases.now(run, 1) or {})["phase"] == phases.TRAINING

    metrics_line(run, time=60.0, save="begins")
    told = phases.now(run, 1) or {}
    assert (told["phase"], told["since"]) == (phases.SAVING, 60.0)

    metrics_line(run, time=70.0, saves=1, saving=10.0)
    assert (phases.now(run, 1) or {})["phase"] == phases.TRAINING


def test_a_job_that_is_over_is_not_saving_though_it_was_killed_in_a_save(run: RunFolder) -> None:
    log = PhaseLog(run, 1)
    log.enter(phases.TRAINING)
    metrics_line(run, save="begins")
    log.end()

    assert (phases.now(run, 1) or {})["phase"] == ""


def test_the_time_of_saves_is_told_apart_from_that_of_training(run: RunFolder) -> None:
    log = PhaseLog(run, 1)
    log.spent(phases.TRAINING, 100.0)

    log.of_these(phases.TRAINING, phases.SAVING, 30.0)
    log.end()

    told = phases.read(run, 1) or {}
    assert told["spent"] == {phases.TRAINING: 70.0, phases.SAVING: 30.0}
