"""`rabaska explain`: messages, runs, and what the site's support will ask for."""

import json
import os
import subprocess
import sys

import pytest

from rabaska.domain.runs import RunState, RunStatus
from rabaska.errors import NoSpace, WrongUse
from rabaska.journeys.explain import explain_text, in_words, support_bundle
from rabaska.knowledge.failures import explain, facts, nearest
from rabaska.records.home import Home
from rabaska.steps.explain_failure import of_run


def types(tmp_path, *words, feed="", code=0):
    environment = {**os.environ, "RABASKA_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "rabaska", *words], input=feed, env=environment, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done


def test_a_message_is_explained_with_its_fix_and_what_rabaska_does(tmp_path):
    message = "RuntimeError: CUDA error: no kernel image is available for execution on the device"

    printed = types(tmp_path, "explain", message).stdout

    assert f"> {message}" in printed
    assert "fix: " in printed
    assert "rabaska: `rabaska doctor" in printed


def test_words_need_no_quotes(tmp_path):
    printed = types(tmp_path, "explain", "Invalid", "qos", "specification").stdout

    assert "> Invalid qos specification" in printed


def test_a_message_can_come_through_a_pipe(tmp_path):
    log = "step 1\nstep 2\nModuleNotFoundError: No module named 'torch'\n"

    printed = types(tmp_path, "explain", "-", feed=log).stdout

    assert "> ModuleNotFoundError: No module named 'torch'" in printed


def test_the_reason_of_a_waiting_job_is_explained(tmp_path):
    told = json.loads(types(tmp_path, "explain", "QOSMaxWallDurationPerJobLimit", "--json").stdout)

    assert told["explanation"]["known"][0]["stage"] == "pending"


def test_unknown_text_is_shown_as_it_is_with_the_nearest_facts(tmp_path):
    message = "the partition gpu_x refuses a time limit of 9 days"

    printed = types(tmp_path, "explain", message).stdout

    assert printed.startswith(message)
    assert "No known explanation" in printed
    assert "Similar messages" in printed
    assert "--bundle FOLDER" in printed


def test_a_text_that_shares_nothing_with_any_fact_has_no_neighbours():
    assert nearest("xyzzy plugh") == ()


def test_every_fact_is_the_nearest_to_its_own_meaning():
    for fact in facts():
        assert fact.id in [near.id for near in nearest(fact.meaning + " " + fact.id)], fact.id


def test_nothing_at_all_cannot_be_explained(tmp_path):
    with pytest.raises(WrongUse):
        explain_text(" \n")

    assert "nothing to explain" in types(tmp_path, "explain", "-", code=2).stderr


def test_the_bundle_holds_the_exact_text_and_who_asks(tmp_path):
    message = "slurmstepd: error: frobnicated\nat dawn"

    types(tmp_path, "explain", "-", "--bundle", "for-support", feed=message)

    assert (tmp_path / "for-support" / "message.txt").read_text() == message
    request = (tmp_path / "for-support" / "request.md").read_text()
    assert "- User: " in request
    assert message in request


def test_a_bundle_that_cannot_be_written_is_told_without_a_traceback(tmp_path):
    (tmp_path / "taken").write_text("a file")

    with pytest.raises(NoSpace):
        support_bundle(explain_text("frobnicated"), tmp_path / "taken" / "x", Home(tmp_path))


def test_a_failed_run_is_explained_and_its_bundle_names_its_jobs(tmp_path):
    (tmp_path / "train.py").write_text("print('hello')\nimport torchvisoin\n")
    (tmp_path / "rabaska.toml").write_text('command = "python train.py"\n')
    run = types(tmp_path, "run", "-q", "--anyway").stdout.strip()
    types(tmp_path, "wait", run, "-q", code=1)

    printed = types(tmp_path, "explain", run, "--bundle", "for-support").stdout

    assert f"run {run} on here: failed" in printed
    assert "No module named 'torchvisoin'" in printed
    request = (tmp_path / "for-support" / "request.md").read_text()
    assert f"- Run: {run}" in request
    assert "- Jobs: " in request
    assert (tmp_path / "for-support" / "job.sh").read_text().startswith("#!/bin/bash")
    assert types(tmp_path, "explain").stdout == printed


def failed_for(tmp_path, settings):
    """Two sentences on a run whose program lacks a module: of `status` and of `explain`."""
    (tmp_path / "train.py").write_text("import cv2_of_nobody, cv2\n")
    (tmp_path / "cv2_of_nobody.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'cv2'\")"
    )
    (tmp_path / "rabaska.toml").write_text(f'command = "python train.py"\n{settings}')
    run = types(tmp_path, "run", "-q", "--anyway").stdout.strip()
    types(tmp_path, "wait", run, "-q", code=1)
    return types(tmp_path, "status", run).stdout, types(tmp_path, "explain", run).stdout


def test_a_missing_module_names_the_package_and_what_to_do_next(tmp_path):
    for told in failed_for(tmp_path, ""):
        words = " ".join(told.split())
        assert "The program imports `cv2`, which its environment does not have" in words
        assert "Install `opencv-python` with the `pip` of the shell in which you type" in words
        assert "then `rabaska run`" in words


@pytest.mark.parametrize(("settings", "said"), [
    ('[environment]\nkind = "virtualenv"\nrequirements = "packages.txt"\n',
     "Add `opencv-python` to packages.txt, then `rabaska run`"),
    ('[environment]\nkind = "conda"\nfile = "environment.yml"\n',
     "Add `opencv-python` to environment.yml, then `rabaska run`"),
    ('[environment]\npath = "~/envs/vision"\n',
     "Install `opencv-python` in the environment ~/envs/vision"),
    ('[cluster.there.environment]\nkind = "current"\n',
     'Write `kind = "virtualenv"` and `requirements = "requirements.txt"` under '
     "[cluster.there.environment], with `opencv-python` in that file, then `rabaska run`"),
])  # fmt: skip
def test_where_a_missing_package_goes_depends_on_the_environment(tmp_path, settings, said):
    (tmp_path / "packages.txt").write_text("numpy\n")
    (tmp_path / "environment.yml").write_text("dependencies: [numpy]\n")
    (tmp_path / "rabaska.toml").write_text(f'command = "python train.py"\n{settings}')
    known = explain("ModuleNotFoundError: No module named 'cv2'", stage="run")

    (failure,) = of_run(known, "digits-0", "there", {"folder": str(tmp_path)})

    assert said in failure.fix


def test_a_module_in_a_folder_of_the_project_is_no_missing_package(tmp_path):
    (tmp_path / "src" / "ours").mkdir(parents=True)
    known = explain("ModuleNotFoundError: No module named 'ours.data'", stage="run")

    (failure,) = of_run(known, "digits-0", "there", {"folder": str(tmp_path)})

    assert '`PYTHONPATH = "src"` under [environment.variables]' in failure.fix


def test_a_run_without_troubles_is_given_none(tmp_path):
    (tmp_path / "train.py").write_text("print('no memory of the partition limit was lost')")
    (tmp_path / "rabaska.toml").write_text('command = "python train.py"\n')
    run = types(tmp_path, "run", "-q").stdout.strip()
    types(tmp_path, "wait", run, "-q")

    printed = types(tmp_path, "explain", run, "--bundle", "for-support").stdout

    assert printed.startswith(f"run {run} on here: finished\nIt finished.\n")
    assert "fix:" not in printed


def test_a_bundle_that_is_written_is_not_advised(tmp_path):
    asked = ("explain", "frobnicated", "--bundle", "for-support")

    assert "--bundle" not in types(tmp_path, *asked).stdout


@pytest.mark.parametrize(("state", "reason", "hint", "words"), [
    (RunState.RUNNING, "", "", "It is running."),
    (RunState.CANCELLED, "you cancelled it", "", "You cancelled it."),
    (RunState.QUEUED, "submitted a moment ago", "",
     "It waits in the queue.\nSubmitted a moment ago."),
    (RunState.INTERRUPTED, "it was never submitted", "`rabaska resume` submits it",
     "It was never submitted.\nfix: `rabaska resume` submits it"),
])  # fmt: skip
def test_how_a_run_stands_in_words(state, reason, hint, words):
    assert in_words(RunStatus("r", "here", state, reason=reason, hint=hint)) == words


def test_the_log_of_the_last_job_is_read_whatever_was_queued_behind_it(tmp_path):
    (tmp_path / "train.py").write_text("raise MemoryError('CUDA out of memory. Tried 2 GiB')")
    (tmp_path / "rabaska.toml").write_text('name = "p"\ncommand = "python train.py"\n')
    types(tmp_path, "run", "--wait", "--quiet", "--jobs", "3", code=1)
    told = json.loads(types(tmp_path, "status", "--json").stdout)
    behind = tmp_path / "home" / "store" / "runs" / told["name"] / "logs"
    for name in ("scheduler-998.out", "scheduler-999.out"):
        (behind / name).write_text("OSError: [Errno 28] No space left on device\n")

    printed = types(tmp_path, "explain", told["name"]).stdout

    assert "CUDA out of memory" in printed
    assert "No space left" not in printed
