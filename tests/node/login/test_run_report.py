"""The line of JSON that `status` reads of each run."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_runs import begin_job, end_job, make_run, print_log

from rabaska.node import files
from rabaska.node.login.job_reports import steps_redone
from rabaska.node.login.run_report import last_lines, report
from rabaska.node.record import chain_rule
from rabaska.node.record.run_folder import RunFolder


def printed(*words: str) -> list[dict[str, Any]]:
    """What the command prints, run as the job's own program would be."""
    command = [sys.executable, "-c", "import sys; from rabaska.node.login.run_report import main; "
               "sys.exit(main(sys.argv[1:]))", *words]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_run_that_has_not_begun_says_so(tmp_path: Path) -> None:
    run = make_run(tmp_path)

    told = report(run.path)

    assert told["verdict"]["decision"] == "not begun"
    assert told["run"] == "digits-7f3a"
    assert told["path"] == run.path
    assert told["about"]["project"] == "digits"
    assert (told["walltime"], told["jobs_requested"]) == (60.0, 3)
    assert (told["jobs"], told["checkpoint"], told["tail"]) == ([], None, "")
    assert (told["done"], told["stop"], told["problems"]) == (False, False, [])


def test_a_chain_is_told_job_by_job_with_the_steps_it_made_again(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    first = begin_job(run)
    print_log(run, first, "".join(f"step {n} loss {1 / n}\n" for n in range(1, 51)))
    end_job(run, first, chain_rule.KILLED, signal=9, exit_code=None, reason="signal 9")
    second = begin_job(run)
    print_log(run, second, "resuming from step 40\n")
    print_log(run, second, "".join(f"step {n} loss {1 / n}\n" for n in range(41, 101)))
    end_job(run, second, chain_rule.FINISHED, checkpoint=saved_by(run, second, "step-100.npz"))
    files.write_whole(run.done, "")

    told = report(run.path)

    assert told["verdict"]["decision"] == "finished"
    assert told["done"] is True
    assert told["checkpoint"] == {"path": "checkpoints/step-100.npz", "size": 7, "written": 5.0}
    assert told["metrics"] == {"loss": 0.01}
    one, two = told["jobs"]
    assert (one["how"], one["signal"], one["reason"]) == ("killed", 9, "signal 9")
    assert (one["first_step"], one["last_step"], one["steps_redone"]) == (1, 50, None)
    assert (two["first_step"], two["last_step"], two["steps_redone"]) == (41, 100, 10)
    assert (two["id"], two["begun"], two["ended"]) == ("12_2", 2000.0, 2060.0)
    assert [job["holder_alive"] for job in told["jobs"]] == [False, False]


def test_a_loss_that_is_no_number_any_more_hides_that_of_earlier_links(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    for text in ("step 10 loss 0.5\n", "step 20 loss nan\n"):
        job = begin_job(run)
        print_log(run, job, text)
        end_job(run, job)

    assert report(run.path)["metrics"] == {"loss": None}


def test_steps_made_again_are_counted_for_a_program_that_prints_seldom(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    for first, last in ((1, 391), (301, 800)):  # killed at 390, and the last save was at 300
        job = begin_job(run)
        steps = [step for step in range(first, last) if step % 20 == 0]
        print_log(run, job, "".join(f"step {step}\n" for step in steps))
        end_job(run, job)

    told = report(run.path)

    assert [job["steps_redone"] for job in told["jobs"]] == [None, 80]


def test_a_living_holder_is_running(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    begin_job(run)

    told = report(run.path)

    assert told["jobs"][0]["holder_alive"] is True
    assert told["jobs"][0]["how"] == "running"
    assert told["verdict"]["decision"] == "go on"


def test_a_holder_that_is_gone_without_a_word_is_lost(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    gone = subprocess.Popen(["true"])
    gone.wait()
    begin_job(run, pid=gone.pid)

    told = report(run.path)

    assert told["jobs"][0]["holder_alive"] is False
    assert told["jobs"][0]["how"] == "lost"


def test_of_a_holder_on_another_machine_nothing_is_claimed(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    begin_job(run, host="node17")

    told = report(run.path)

    assert told["jobs"][0]["holder_alive"] is None
    assert told["jobs"][0]["host"] == "node17"


def test_the_checkpoint_of_a_running_job_is_found_and_nothing_is_renamed(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    job = begin_job(run)
    whole = Path(run.checkpoints(job)) / "step-1.npz"
    np.savez(whole, step=np.array(1))
    os.utime(whole, (1000, 1000))
    (Path(run.checkpoints(job)) / "step-2.npz").write_bytes(b"half")

    told = report(run.path)

    assert told["checkpoint"] == {
        "path": "checkpoints/step-1.npz",
        "size": whole.stat().st_size,
        "written": 1000.0,
    }
    assert len(os.listdir(run.checkpoints(job))) == 2


def saved_by(run: RunFolder, job: int, name: str) -> dict[str, Any]:
    """The record of a checkpoint that is really there."""
    path = Path(run.checkpoints(job), name)
    path.write_bytes(b"content")
    os.utime(path, (5, 5))
    return {"path": f"checkpoints/{name}", "size": 7, "mtime_ns": 5 * 10**9}


@pytest.mark.parametrize("harm", [os.unlink, lambda path: os.truncate(path, 0)])
def test_a_checkpoint_that_is_empty_or_gone_is_not_called_the_newest_valid_one(
    tmp_path: Path, harm: Callable[[str], None]
) -> None:
    run = make_run(tmp_path)
    job = begin_job(run)
    np.savez(Path(run.checkpoints(job), "step-1.npz"), step=np.array(1))
    end_job(run, job, chain_rule.KILLED, checkpoint=saved_by(run, job, "step-2.npz"))
    harm(os.path.join(run.checkpoints(job), "step-2.npz"))

    told = report(run.path)

    assert told["checkpoint"]["path"] == "checkpoints/step-1.npz"


def test_a_run_that_gave_up_says_why_and_shows_the_last_lines(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    job = begin_job(run)
    print_log(run, job, "start\nTraceback\nValueError: no\n")
    end_job(run, job, chain_rule.CRASHED, progressed=False, exit_code=1, reason="exit code 1")

    told = report(run.path, tail=2)

    assert told["verdict"]["decision"] == "give up"
    assert "exit code 1" in told["verdict"]["reason"]
    assert told["tail"] == "Traceback\nValueError: no"


def test_before_the_first_job_the_schedulers_own_log_is_shown(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    Path(run.logs, "scheduler-12.out").write_text("job.sh: python3: command not found\n")

    assert report(run.path)["tail"] == "job.sh: python3: command not found"


def test_of_a_redrawn_line_only_the_last_state_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_bytes(
        "first\n 10%|#  |\r 20%|## |\r100%|███|\r\nlast \xff".encode("latin-1", "replace")
    )

    assert last_lines(str(log), 2).startswith("100%|???|\nlast ")


def test_the_last_lines_of_ten_megabytes_without_a_newline_are_short(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_bytes(b"x" * 10_000_000)

    assert 0 < len(last_lines(str(log), 20)) <= 16 * 1024


def test_every_run_of_a_store_gets_one_line(tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    make_run(tmp_path, "two")
    (tmp_path / "runs" / "half.partial").mkdir()

    lines = printed("--all", str(tmp_path))

    assert [line["run"] for line in lines] == ["one", "two"]


def test_folders_that_are_no_runs_give_lines_with_problems(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    newer = make_run(tmp_path, "newer")
    files.write_json(newer.plan, {"format": 99})

    lines = printed(*(str(tmp_path / name) for name in ("gone", "empty", "file")), newer.path)

    assert [line["problems"][0] for line in lines] == [
        "there is no such folder",
        "it has no run.json",
        "there is no such folder",
        "run.json has format 99, not 1",
    ]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": 1}', b"null"])
def test_a_damaged_plan_is_a_problem_and_the_jobs_are_told_all_the_same(
    tmp_path: Path, content: bytes
) -> None:
    run = make_run(tmp_path)
    begin_job(run)
    Path(run.plan).write_bytes(content)

    told = report(run.path)

    assert told["problems"]
    assert told["jobs"][0]["id"] == "12_1"


records = st.one_of(
    st.binary(max_size=50),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(["checkpoint", "how", "pid", "started", "mtime_ns", "path", "id",
                                 "format", "patterns", "resume", "after_job", "progressed"]),
                inner, max_size=5,
            ),
        ),
        max_leaves=10,
    ).map(lambda value: json.dumps(value).encode()),
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(begun=records, ended=records, jobs=records, plan=records)
def test_no_content_of_any_record_makes_the_report_fail(
    tmp_path: Path, begun: bytes, ended: bytes, jobs: bytes, plan: bytes
) -> None:
    path = tmp_path / "runs" / "digits-7f3a"
    if not path.exists():
        begin_job(make_run(tmp_path))
    run = RunFolder(str(path))
    for record, content in (
        (run.begun(1), begun), (run.ended(1), ended), (run.submissions, jobs), (run.plan, plan),
    ):  # fmt: skip
        Path(record).write_bytes(content)

    told = report(run.path)

    assert json.loads(json.dumps(told))["run"]


@pytest.mark.parametrize(
    ("last_before", "first", "every", "redone"),
    [
        (50, 41, 1, 10),
        (50, 51, 1, 0),
        (50, 60, 1, 0),
        (400, 1, 1, 400),
        (380, 320, 20, 80),
        (400, 420, 20, 0),
        (5, 1, 100, 5),
        (None, 5, 1, None),
        (5, None, 1, None),
    ],
)
def test_steps_made_again_are_counted_where_both_ends_are_known(
    last_before: int | None, first: int | None, every: int, redone: int | None
) -> None:
    assert steps_redone(last_before, first, every) == redone


def test_a_program_that_prints_nothing_has_the_newest_values_of_its_series(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    begin_job(run)
    newest = [["val/acc", 9, "0.5"], ["train/loss", 9, "nan"], ["odd"], 7]
    told = {"main": "train/loss", "curve": [2.0, 1.0], "newest": newest}
    os.makedirs(f"{run.path}/series", exist_ok=True)
    with open(f"{run.path}/series/summary.json", "w") as file:
        json.dump(told, file)

    found = report(run.path)

    assert list(found["metrics"].items()) == [("train/loss", None), ("val/acc", 0.5)]
    assert found["curve"] == {"name": "train/loss", "values": [2.0, 1.0]}
