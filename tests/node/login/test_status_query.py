"""One answer for many runs: their reports, the queue, and its history where it is needed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from made_runs import begin_job, end_job, make_run

from rabaska.node import files
from rabaska.node.login import run_report
from rabaska.node.login.status_query import mark_of, report_untouched
from rabaska.node.record import chain_rule

WAY_IN = "import sys; from rabaska.node.login.status_query import main; main(sys.argv[1:])"
ASK = [sys.executable, "-uc", WAY_IN]


def told(*runs: dict[str, Any], queue: str = "true", history: str = "") -> list[dict[str, Any]]:
    question = {
        "tail": 5,
        "queue": ["sh", "-c", queue],
        "history": ["sh", "-c", history, "sacct", "{jobs}"] if history else [],
    }
    return answers(question, *runs)


def answers(question: dict[str, Any], *runs: dict[str, Any]) -> list[dict[str, Any]]:
    lines = "".join(json.dumps(run) + "\n" for run in runs)
    words = [*ASK, json.dumps(question)]
    done = subprocess.run(words, input=lines.encode(), capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_run_that_waits_is_told_as_the_full_report_tells_it(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    files.append_line(run.submissions, {"submission": "a", "exit_code": 0, "said": "7\n"})

    short = report_untouched(run)

    assert short == run_report.report(run.path)


def test_a_run_that_begun_is_left_to_the_full_report(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    begin_job(run)

    assert report_untouched(run) is None


def test_a_run_that_is_over_is_told_once_and_then_only_marked(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    end_job(run, begin_job(run), how=chain_rule.CRASHED)

    first, _ = told({"path": run.path})
    again, _ = told({"path": run.path, "mark": first["mark"]})

    assert first["run"] == "digits-7f3a"
    assert again == {"path": run.path, "mark": first["mark"]}


def test_runs_are_told_while_more_of_them_are_asked_for(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    end_job(run, begin_job(run), how=chain_rule.CRASHED)
    question = {"tail": 5, "queue": ["touch", f"{tmp_path}/asked"], "history": []}
    words = [*ASK, json.dumps(question)]

    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as asking:
        asking.stdin.write(json.dumps({"path": run.path}).encode() + b"\n")
        asking.stdin.flush()
        first = json.loads(asking.stdout.readline())
        while not (tmp_path / "asked").exists():
            time.sleep(0.01)  # for ever, if the queue waited for the end of the question
        rest, _ = asking.communicate(json.dumps({"path": run.path}).encode() + b"\n")

    assert first["run"] == "digits-7f3a"
    assert [json.loads(line).get("run") for line in rest.splitlines()] == ["digits-7f3a", None]


def test_a_run_that_ends_while_the_queue_is_asked_is_told_again(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    end_job(run, begin_job(run), how=chain_rule.FINISHED)
    record = run.ended(1)
    Path(record).rename(f"{record}.later")

    first, second, last = told({"path": run.path}, queue=f"sleep 1; mv {record}.later {record}")

    assert first["jobs"][0]["ended"] is None
    assert second["jobs"][0]["how"] == chain_rule.FINISHED
    assert last["queue"]["exit_code"] == 0


def test_a_run_taken_up_again_has_another_mark(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    end_job(run, begin_job(run), how=chain_rule.CRASHED)
    before = mark_of(run)

    files.append_line(run.submissions, {"submission": "b", "resume": True, "after_job": 1})

    assert before
    assert mark_of(run) != before


def test_a_run_at_work_has_no_mark(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    begin_job(run)

    assert mark_of(run) is None


@pytest.mark.parametrize(("queue", "asked"), [("echo 'slurm|7_2|RUNNING|'", False), ("true", True)])
def test_history_is_asked_only_of_jobs_that_left_the_queue(
    tmp_path: Path, queue: str, asked: bool
) -> None:
    run = make_run(tmp_path)

    answer = told({"path": run.path, "ids": "7"}, queue=queue, history='echo "asked of $1"')[-1]

    assert (answer["history"] is not None) == asked
    assert not asked or answer["history"]["said"] == "asked of 7\n"


def test_a_queue_that_fails_is_told_in_its_own_words(tmp_path: Path) -> None:
    run = make_run(tmp_path)

    *_, answer = told({"path": run.path}, queue="echo slurmctld is down >&2; exit 1")

    assert answer["queue"]["exit_code"] == 1
    assert answer["queue"]["complained"] == "slurmctld is down\n"
    assert answer["history"] is None


def test_a_queue_that_wants_to_know_which_jobs_is_told_those_of_unfinished_runs(
    tmp_path: Path,
) -> None:
    waiting, finished = make_run(tmp_path, "waiting"), make_run(tmp_path, "finished")
    files.write_json(finished.done, {})
    runs = [{"path": waiting.path, "ids": "71.a 72.a"}, {"path": finished.path, "ids": "9"}]
    question = {"tail": 5, "queue": ["echo", "{jobs}", "--jobs={jobs}"], "history": []}

    *_, answer = answers(question, *runs)

    assert answer["queue"]["said"] == "71.a 72.a --jobs=71.a,72.a\n"


def test_a_queue_that_lists_everybody_is_not_asked_about_nothing(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    question = {"tail": 5, "queue": ["false", "{jobs}"], "history": []}

    *_, answer = answers(question, {"path": run.path})

    assert (answer["queue"]["exit_code"], answer["queue"]["said"]) == (0, "")


@pytest.mark.parametrize(("code", "asked"), [(153, True), (1, False)])
def test_history_is_asked_after_a_partial_answer_and_not_after_none(
    tmp_path: Path, code: int, asked: bool
) -> None:
    run = make_run(tmp_path)
    question = {
        "tail": 5,
        "queue": ["sh", "-c", f"exit {code}"],
        "answers": [0, 153],
        "history": ["echo", "{jobs}"],
    }

    *_, answer = answers(question, {"path": run.path, "ids": "7"})

    assert (answer["history"] is not None) == asked


def test_a_run_folder_made_a_moment_ago_is_about_to_be_submitted(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    young, _ = told({"path": run.path})
    long_ago = time.time() - 60
    os.utime(run.plan, (long_ago, long_ago))
    old, _ = told({"path": run.path})

    assert young["submitting"]["state"] == "under way"
    assert old["submitting"] is None


def test_the_answer_of_a_lost_submission_is_found_and_written_down(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    find = ["echo", "17 rabaska-abc"]
    files.append_line(run.submissions, {"submission": "abc", "time": time.time(), "find": find})

    found, _ = told({"path": run.path})
    later, _ = told({"path": run.path})

    assert found["submitting"]["state"] == "found"
    assert found["submissions"][-1]["said"] == "17\n"
    assert later["submitting"] is None
