"""The end of a job is recorded, whatever goes wrong while it is judged."""

import csv
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from made_runs import PLAN, begin_job, make_run

from rabaska.node.job import finish, keep_results
from rabaska.node.job.program_process import ProgramEnd
from rabaska.node.job.this_job import ThisJob, Work
from rabaska.node.record import chain_rule, jobs, learned_patterns, resume_evidence, step_tracks
from rabaska.node.record.events import EventLog
from rabaska.node.record.phases import PhaseLog


@pytest.fixture
def work(tmp_path: Any) -> Work:
    run = make_run(tmp_path)
    begin_job(run)
    fields: dict[str, Any] = {
        "run": run, "plan": PLAN, "this_job": ThisJob("12_1", 0.0, 0.0, ""),
        "event_log": EventLog(run, 1),
        "lease": SimpleNamespace(job=1, lost=lambda: "", superseded=False), "deadline": None,
        "stop_reason": lambda: None, "end_signal": lambda: None, "phases": PhaseLog(run, 1),
    }  # fmt: skip
    return Work(**fields)


BUGS = [
    (step_tracks, "of_job"),
    (resume_evidence, "judge"),
    (learned_patterns, "learn"),
    (jobs, "newest"),
    (finish.extend_chain, "forecast_of_job"),
]


@pytest.mark.parametrize(("module", "name"), BUGS)
@pytest.mark.parametrize("how", [chain_rule.FINISHED, chain_rule.TIME_LIMIT])
def test_a_bug_while_an_end_is_judged_keeps_its_traceback_and_the_end_is_recorded(
    work: Work,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    module: Any,
    name: str,
    how: str,
) -> None:
    def fails(*_given: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(module, name, fails)

    finish.write_end(work, None, ProgramEnd(how, "why", 0))

    ended = jobs.read_ended(work.run, 1)
    assert ended is not None
    assert ended.how == how
    assert os.path.exists(work.run.done) is (how == chain_rule.FINISHED)
    said = capfd.readouterr()
    asked = (name, how) != ("forecast_of_job", chain_rule.FINISHED)
    assert ("ZeroDivisionError: a bug" in said.err) is asked


FINISHED = ProgramEnd(chain_rule.FINISHED, "the program finished", 0)
UNREACHED = "the run folder could not be reached for 31 s"


@pytest.fixture
def results(tmp_path: Any) -> str:
    """A folder of code, and five results in it."""
    code = tmp_path / "local/code"
    code.mkdir(parents=True)
    for number in range(5):
        (code / f"result-{number}.txt").write_text("precious")
    return str(code)


def test_results_that_no_lease_allows_to_copy_are_missing(
    work: Work, results: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RABASKA_KEEP_SECONDS", "0")
    work.lease.lost = lambda: UNREACHED  # type: ignore[method-assign]

    end = keep_results.keep_results(work, results, {}, lambda: True, FINISHED)
    finish.write_end(work, None, end)

    assert end.how == chain_rule.NOT_KEPT
    assert sorted(end.missing) == [f"result-{number}.txt" for number in range(5)]
    assert "could not be reached" in end.reason
    assert "--walltime" not in end.remedy
    assert not os.path.exists(work.run.done)


def test_a_lease_that_is_lost_while_results_are_copied_is_waited_for(
    work: Work, results: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["", ""] + [UNREACHED] * 3)
    work.lease.lost = lambda: next(answers, "")  # type: ignore[method-assign]
    monkeypatch.setattr(finish.time, "sleep", lambda seconds: None)

    end = keep_results.keep_results(work, results, {}, lambda: True, FINISHED)

    assert (end.how, list(end.missing)) == (chain_rule.FINISHED, [])
    assert len([name for name in os.listdir(work.run.output(1)) if "result" in name]) == 5


def test_a_job_whose_run_another_holds_neither_waits_nor_tells_what_is_missing(
    work: Work, results: str
) -> None:
    work.lease.lost = lambda: "another job holds the run now"  # type: ignore[method-assign]
    work.lease.superseded = True

    assert keep_results.keep_results(work, results, {}, lambda: True, FINISHED) == FINISHED
    assert not [name for name in os.listdir(work.run.output(1)) if "result" in name]


@pytest.fixture
def narrow_fields() -> Iterator[None]:
    """Rows that csv refuses; before Python 3.11 it refuses those with a NUL."""
    before = csv.field_size_limit(8)
    yield
    csv.field_size_limit(before)


@pytest.mark.usefixtures("narrow_fields")
def test_a_table_that_is_none_tells_what_came_before(tmp_path: Any) -> None:
    (tmp_path / "output").mkdir()
    table = tmp_path / "output/m.csv"
    table.write_bytes(b"epoch,loss\n0,1\n1,2\n" + b"x" * 100 + b"\n2,3\n")

    found = step_tracks._of_text(str(tmp_path), "output/m.csv", [0, 0])

    assert found is not None
    assert (found.first, found.last) == ([0.0], [1.0])
