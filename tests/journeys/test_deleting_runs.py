"""Delete: nothing is lost that nobody agreed to lose, whatever happens meanwhile."""

import json
import os
import sys

import pytest

import rabaska
from rabaska.errors import CommandFailed, WrongUse
from rabaska.journeys import delete as journey
from rabaska.remote.place import Outcome
from rabaska.steps.connect import ConnectedCluster

TRAIN = """
import sys
open(sys.argv[1] + "/model.bin", "w").write("weights")
print("accuracy 0.9")
"""
WITH_GIT = """
import os, sys
os.makedirs(sys.argv[1] + "/model/.git")
open(sys.argv[1] + "/model/.git/config", "w").write("settings")
"""


@pytest.fixture
def someone(laptop):
    (laptop.project / "train.py").write_text(TRAIN)
    (laptop.project / "rabaska.toml").write_text(
        f'name = "tiny"\ncommand = "{sys.executable} train.py {{output}}"\n'
        '[resources]\nwalltime = "30s"\n'
    )
    return laptop


def finished(someone):
    run = someone.types("run", "-q", "--no-doctor", draws=["0001"])
    someone.types("wait", run, "-q")
    return run, someone.user.home / "store/runs" / run


def preview(someone, run):
    someone.goes_there()
    (doomed,) = rabaska.delete(run).doomed
    return doomed


@pytest.fixture
def run_and_folder(someone):
    return finished(someone)


def test_a_listing_that_fails_is_no_empty_folder(someone, run_and_folder, monkeypatch):
    run, folder = run_and_folder
    really = ConnectedCluster.run

    def fails(self, script, **more):
        if "send-results" in script:
            return Outcome(1, "", "OSError: stale file handle")
        return really(self, script, **more)

    monkeypatch.setattr(ConnectedCluster, "run", fails)

    with pytest.raises(CommandFailed, match="stale file handle"):
        preview(someone, run)
    with pytest.raises(CommandFailed):
        someone.types("delete", run, "--yes")
    assert folder.exists()


def test_what_the_program_printed_counts_as_well(someone, run_and_folder):
    run, _ = run_and_folder

    before = preview(someone, run).not_fetched
    someone.types("fetch", run)

    assert before == ("logs/job-001.log", "output/model.bin")
    assert preview(someone, run).not_fetched == ()


def test_what_is_newer_here_is_not_what_is_there(someone, run_and_folder):
    run, folder = run_and_folder
    here = someone.project / f"results/{run}/output/model.bin"
    here.parent.mkdir(parents=True)
    here.write_text("something else")
    os.utime(here, (2**32, 2**32))

    with pytest.raises(CommandFailed, match=r"output/model\.bin"):
        someone.types("delete", run, "--yes", "--fetch")

    assert preview(someone, run).not_fetched == ("output/model.bin",)
    assert folder.exists()
    assert here.read_text() == "something else"


def test_what_does_not_come_is_not_deleted_after_a_fetch(someone):
    (someone.project / "train.py").write_text(WITH_GIT)
    run, folder = finished(someone)

    with pytest.raises(CommandFailed, match=r"output/model/\.git/config"):
        someone.types("delete", run, "--yes", "--fetch")

    assert folder.exists()
    someone.types("delete", run, "--yes")
    assert not folder.exists()


def test_results_of_another_run_of_that_name_are_not_those_of_this_one(someone, run_and_folder):
    run, _ = run_and_folder
    someone.types("fetch", run)
    note = someone.project / f"results/{run}/.fetched.json"
    value = json.loads(note.read_text())
    note.write_text(json.dumps({**value, "run": {"id": "0" * 32, "name": run}}))

    (note.parent / "output/model.bin").write_text("of the other run")

    assert "output/model.bin" in preview(someone, run).not_fetched


def test_a_run_that_was_resumed_while_it_was_fetched_is_not_deleted(
    someone, run_and_folder, monkeypatch
):
    run, folder = run_and_folder
    really = journey.fetch

    def fetch(*given, **more):
        came = really(*given, **more)
        with (folder / "submissions.jsonl").open("a") as stream:
            stream.write(json.dumps({"submission": "b" * 32, "time": 0, "jobs": 1}) + "\n")
        return came

    monkeypatch.setattr(journey, "fetch", fetch)

    with pytest.raises(WrongUse, match="submitted again meanwhile"):
        someone.types("delete", run, "--yes", "--fetch")

    assert (folder / "run.json").exists()
    assert (someone.user.home / f"runs/{run}.json").exists()


def test_a_deletion_that_was_interrupted_is_completed_by_the_next(someone, run_and_folder):
    run, folder = run_and_folder
    doomed = folder.with_name(f"{run}.deleting.partial")
    folder.rename(doomed)
    (doomed / "logs").chmod(0o500)

    someone.types("delete", run, "--yes")

    assert not doomed.exists()
    assert not (someone.user.home / f"runs/{run}.json").exists()


def test_what_an_earlier_deletion_left_is_no_place_to_move_a_run_into(someone, run_and_folder):
    run, folder = run_and_folder
    precious = folder.parent.parent / "precious"
    precious.mkdir(mode=0o500)
    folder.with_name(f"{run}.deleting.partial").symlink_to(precious)

    someone.types("delete", run, "--yes")

    assert not folder.exists()
    assert precious.stat().st_mode & 0o777 == 0o500
    assert [*folder.parent.iterdir()] == []
