"""Records of a run that are damaged count as missing, or are named; none breaks anything."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from made_runs import PLAN, begin_job, end_job, make_run, print_log
from tests.records.damages import DAMAGES, RECORDS

from rabaska.cli.render_status import one_run
from rabaska.domain.runs import RunStatus
from rabaska.node import files
from rabaska.node.checkpoints import save_slots
from rabaska.node.job import results
from rabaska.node.job.copied_files import Copies
from rabaska.node.login import follow_log, run_report, status_query
from rabaska.node.record import (
    chain_rule,
    events,
    jobs,
    learned_patterns,
    phases,
    plan,
    resume_evidence,
    step_tracks,
    submissions,
)
from rabaska.node.record.chain_rule import limit
from rabaska.node.record.run_folder import RunFolder
from rabaska.records.run_index import RunRecord
from rabaska.steps.read_status import _read_run
from rabaska.views.runs import run_view

FALLBACK = '{"path": "output/a.npz", "mtime_ns": 5, "job": 1, "steps": 3, "id": "12"}\n'


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run with every record, whose first job reached its time limit."""
    run = make_run(tmp_path, jobs=1)
    submitted = {"submission": "a", "time": 5.0, "jobs": 1, "after_job": 0, "after": ""}
    files.append_line(run.submissions, {**submitted, "resume": True})
    files.append_line(
        run.submissions, {"submission": "a", "exit_code": 0, "said": "12", "time": 6.0}
    )
    job = begin_job(run, pid=2**22 + 1)
    placed = [{"name": "d", "bytes": 5, "where": "here", "seconds": 1.0}]
    events.append(run, job, "staged", placed=placed)
    events.append(run, job, "extended", jobs=1, why="why")
    print_log(run, job, "step 1 loss 2\nstep 2 loss 1\n")
    told = {"time": 7.0, "began": 5.0, "job": 1, "steps": 5, "epochs": 1, "waiting": 0.1}
    files.append_line(
        run.metrics, {**told, "batches": 5, "batch": 0, "length": 5, "saves": 1, "saved": 6.0}
    )
    files.write_json(run.patterns, {"patterns": ["*.pt"]})
    step_tracks.remember(run, job, step_tracks.look(run.carried(job), ["*.npz"]))
    own = step_tracks.of_job(run, job, "", ["*.npz"])
    Path(run.output(job), "a.npz").write_bytes(b"1")
    checkpoint = {"path": "output/a.npz", "size": 1, "mtime_ns": 5}
    end_job(run, job, checkpoint=checkpoint, tracks=step_tracks.to_json(own), missing=["b"])
    phase = phases.PhaseLog(run, job)
    phase.spent(phases.BUILDING, 41.0)
    phase.enter(phases.STAGING)
    phase.moved("cats", 100, 100)
    code = Path(run.path, "code")
    code.mkdir()
    (code / "a.npz").write_bytes(b"2")
    results.keep_new(str(code), run.carried(job), {})
    return run


def damage(run: RunFolder, record: str, how: str) -> None:
    file = Path(run.path, record)
    text = file.read_text() if file.exists() else FALLBACK
    file.write_text(DAMAGES[how](text), errors="surrogateescape")


def is_damaged(path: str) -> bool:
    try:
        told = files.read_json(path) or {}
        return (told.get("run"), told.get("walltime")) != ("digits-7f3a", PLAN.walltime)
    except ValueError:
        return True


def everything_read(run: RunFolder) -> None:
    """All that a job, and the commands, read of a run."""
    asked = PLAN
    if is_damaged(run.plan):
        with pytest.raises((plan.WrongFormat, ValueError), match=r"run\.json"):
            plan.load(run)
    else:
        asked = plan.load(run) or PLAN
    resume_evidence.verdict_on(run, asked)
    resume_evidence.judge(
        run, 1, asked, step_tracks.of_job(run, 1, "", ["*.npz"]), chain_rule.TIME_LIMIT
    )
    jobs.not_kept(run, run.output(1))
    submissions.jobs_there(run)
    submissions.is_unanswered(run)
    learned_patterns.learn(run, 1, ["*.pt"])
    limit(asked, [])
    list(events.read(run))
    save_slots.read(run.carried(1))
    known = Copies(os.path.join(run.path, "code"), run.carried(1))
    known.remember(known.paths(), [])
    follow_log.is_over(run)
    status_query._submitting(run)


def as_shown(run: RunFolder) -> RunStatus:
    told = json.loads(files.to_json(run_report.report(run.path)))
    record = RunRecord(
        name=run.name, cluster="here", path=run.path, project="", created=1.0, job_id="12"
    )
    return _read_run(record, told, {}, 100.0, job_id="12", explained=True)


@pytest.mark.parametrize("how", [how for how in DAMAGES if how != "deep"])
@pytest.mark.parametrize("record", RECORDS)
def test_a_damaged_record_breaks_neither_a_job_nor_a_command(
    run: RunFolder, record: str, how: str
) -> None:
    damage(run, record, how)

    shown = as_shown(run)
    everything_read(run)

    assert list(one_run(run_view(shown), colours=False))
    assert isinstance(shown.verdict, int)


@pytest.mark.parametrize("record", [name for name in RECORDS if "saved" not in name])
def test_what_is_nested_too_deeply_is_damaged(run: RunFolder, record: str) -> None:
    damage(run, record, "deep")

    assert as_shown(run)
    everything_read(run)


@pytest.mark.parametrize("record", ["run.json", "jobs/001/begun.json", "jobs/001/ended.json"])
@pytest.mark.parametrize("how", ["cut short", "wrong types", "binary", "a list"])
def test_status_names_the_record_that_is_damaged(run: RunFolder, record: str, how: str) -> None:
    damage(run, record, how)

    assert any(record in problem for problem in as_shown(run).problems), as_shown(run).problems


def test_a_damaged_list_of_copies_keeps_new_copies_beside_the_old(run: RunFolder) -> None:
    damage(run, "carried/001/beside.json", "cut short")
    code = Path(run.path, "code")
    (code / "a.npz").write_bytes(b"3")

    kept: Any = results.keep_new(str(code), run.carried(1), {})

    assert kept.paths == ["a.npz"]
    assert Path(run.output(1), "beside-code-2/a.npz").read_bytes() == b"3"
