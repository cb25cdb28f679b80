"""Attempts at a run that come to nothing, and programs that never start."""

import json

import pytest

from rabaska.errors import NoSuchRun, SettingsError, SubmissionRefused, Unreachable
from rabaska.remote.place import Outcome
from rabaska.steps.connect import ConnectedCluster

REFUSED = ("run", "-q", "--no-doctor", "--gpus", "9000")


def test_a_run_that_was_refused_leaves_nothing_behind(laptop):
    with pytest.raises(SubmissionRefused):
        laptop.types(*REFUSED)

    assert list((laptop.user.home / "store/runs").glob("tiny*")) == []
    with pytest.raises(NoSuchRun, match="no runs yet"):
        laptop.types("status")


@pytest.mark.parametrize("code", [1, 137, 143])
def test_a_submission_whose_process_died_is_no_refusal(laptop, monkeypatch, code):
    """What it had started goes on: the run's folder must be there when its job begins."""
    really = ConnectedCluster.run

    def dies(cluster, script, **given):
        outcome = really(cluster, script, **given)
        return Outcome(code, "", "Killed") if " submit " in script else outcome

    monkeypatch.setattr(ConnectedCluster, "run", dies)
    with pytest.raises(Unreachable, match="did not answer"):
        laptop.types("run", "-q", "--no-doctor")
    monkeypatch.setattr(ConnectedCluster, "run", really)
    laptop.types("wait", "-q")

    (run,) = json.loads(laptop.types("status", "--all", "--json"))
    assert run["state"] == "finished"


def test_a_run_whose_folder_cannot_be_made_leaves_nothing_behind(laptop):
    laptop.user.home.joinpath("store").mkdir(parents=True)
    laptop.user.home.joinpath("store/runs").write_text("no folder")

    with pytest.raises(Exception, match="could not be made"):
        laptop.types("run", "-q", "--no-doctor")

    assert json.loads(laptop.types("status", "--all", "--json")) == []


@pytest.mark.parametrize("command", ["status", "wait", "fetch", "logs", "show"])
def test_after_a_failed_attempt_it_is_said_which_run_is_meant(laptop, command):
    run = laptop.types("run", "-q", "--no-doctor")
    laptop.types("wait", "-q")
    with pytest.raises(SubmissionRefused):
        laptop.types(*REFUSED)

    said, named = laptop.types(command, both=True), laptop.types(command, run, both=True)

    assert "no run came of the last `run` or `rerun`" in said
    assert f"this is {run}, submitted" in said
    assert "no run came" not in named


def test_a_mistake_in_the_settings_counts_as_an_attempt_until_a_run_succeeds(laptop):
    laptop.types("run", "-q", "--no-doctor")
    laptop.says("first {nonsense}")
    with pytest.raises(SettingsError):
        laptop.types("run", "-q", "--no-doctor")
    laptop.says("first")

    after_mistake = laptop.types("status", both=True)
    second = laptop.types("run", "-q", "--no-doctor")
    laptop.types("wait", "-q")
    laptop.types("forget", second)

    assert "no run came" in after_mistake
    assert "no run came" not in laptop.types("status", both=True)


def test_fetch_does_not_blame_a_program_that_never_started(laptop):
    laptop.says("first")
    run = laptop.types("run", "-q", "--no-doctor")
    laptop.types("wait", "-q")
    code = next((laptop.user.home / "store/code").glob("*.tar"))
    code.write_bytes(b"damaged")
    run = laptop.types("rerun", run, "-q", "--no-doctor")
    laptop.types("wait", "-q")

    said = laptop.types("fetch", both=True)

    assert f"the program of {run} never started: job 1 could not be prepared: the code" in said
    assert "`command`" not in said


def test_fetch_gives_the_reason_of_a_program_that_failed(laptop):
    laptop.says("", command="sh -c 'exit 3'")
    laptop.types("run", "-q", "--no-doctor")
    laptop.types("wait", "-q")

    said = laptop.types("fetch", both=True)

    assert "wrote nothing before it ended: job 1 crashed before anything was saved" in said


def test_who_types_run_twice_is_told_of_the_first(laptop):
    laptop.says("20", command="sleep")
    first = laptop.types("run", both=True, draws=["0001"])
    second = laptop.types("run", both=True, draws=["0002"])
    other = laptop.types("run", "--", "1", both=True, draws=["0003"])
    laptop.types("cancel", "tiny-0001")

    assert "the same code, data and arguments" not in first + other
    assert "run tiny-0001 is" in second
    assert "`rabaska cancel tiny-0002` ends this one" in second
    for run in ("tiny-0002", "tiny-0003"):
        laptop.types("cancel", run)


def test_the_commands_of_a_hint_name_the_run_which_need_not_be_the_newest(laptop):
    laptop.says("60", command="sleep")
    first = laptop.types("run", "-q", "--no-doctor")
    laptop.says("done")
    laptop.types("run", "-q", "--no-doctor")

    assert f"`rabaska resume {first}`" in laptop.types("cancel", first, both=True)
