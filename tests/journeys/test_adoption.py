"""Runs that this computer does not know: found on their cluster, followed, fetched, cancelled."""

import json
import shutil
import time
from pathlib import Path

import pytest

from rabaska import api
from rabaska.errors import RabaskaError
from rabaska.records.run_index import RunRecord, adopt, remembered

WAITS = """\
import os, time
open(os.environ["RABASKA_OUTPUT"] + "/made.txt", "w").write("made")
print("it works", flush=True)
time.sleep(600)
"""


def listed(laptop, *words):
    return json.loads(laptop.types("status", *words, "--json"))


def until(laptop, run, state):
    end = time.monotonic() + 60
    while laptop.status(run)["state"] != state:
        assert time.monotonic() < end
        time.sleep(0.2)


def test_records_that_were_lost_are_found_again_where_the_runs_are(laptop):
    first, second = (laptop.types("run", "-q") for _ in range(2))
    laptop.types("wait", first, "-q")
    laptop.types("wait", second, "-q")
    shutil.rmtree(laptop.user.home / "runs")

    told = listed(laptop, "--all", "--on", "here")

    assert [each["name"] for each in told] == [first, second]
    assert {each["state"] for each in told} == {"finished"}
    assert laptop.status("")["name"] == second
    assert laptop.types("fetch", first) == str(laptop.user.project / "results" / first)


def test_a_second_laptop_sees_follows_fetches_and_cancels_a_run(laptop, other, tmp_path):
    (laptop.user.project / "train.py").write_text(WAITS)
    laptop.says("", command="python train.py")
    run = laptop.types("run", "-q", "--no-doctor")
    until(laptop, run, "running")
    laptop.project = laptop.project.rename(tmp_path / "unseen")  # from the other laptop

    with pytest.raises(RabaskaError, match="no runs yet") as unknown:
        other.types("status", run)
    seen = listed(other, run, "--on", "here")
    fetched = Path(other.types("fetch", run, "--on", "here"))
    other.types("cancel", run, "--on", "here")
    until(laptop, run, "cancelled")

    assert "--on" in unknown.value.hint
    assert (seen["name"], seen["state"]) == (run, "running")
    assert "it works" in other.types("logs", run)
    assert fetched == other.user.project / "results" / run
    assert (fetched / "output" / "made.txt").read_text() == "made"
    other.types("wait", run, "-q", "--on", "here")
    assert [each.name for each in remembered(other.user.home / "runs")] == [run]


def test_a_list_of_a_cluster_says_what_was_not_known(laptop, other):
    run = laptop.types("run", "-q")
    laptop.types("wait", run, "-q")
    damaged = laptop.user.home / "store" / "runs" / "damaged-0001"
    damaged.mkdir()
    (damaged / "run.json").write_text('{"format": ')

    told, again = (other.types("status", "--on", "here", both=True) for _ in range(2))

    assert f"added to the list: {run}" in told
    assert "damaged-0001: " in told
    assert f"{run}  here     finished" in told
    assert "added to the list" not in again


def test_a_forgotten_run_is_adopted_again(laptop):
    run = laptop.types("run", "-q")
    laptop.types("wait", run, "-q")
    laptop.types("forget", run)

    with pytest.raises(RabaskaError, match="no runs yet"):
        laptop.types("status", run)
    told = listed(laptop, run[:-1], "--on", "here")

    assert (told["name"], told["state"]) == (run, "finished")


def test_what_is_not_there_is_said_with_what_is(laptop):
    laptop.types("run", "-q")

    for command in ("status", "fetch", "cancel", "logs", "wait", "resume", "show"):
        with pytest.raises(RabaskaError, match="no run on here is called `nope`") as refused:
            laptop.types(command, "nope", "--on", "here")
        assert refused.value.why == "you have 1 run there"


def test_an_adopted_run_of_a_name_that_is_known_is_another_one(laptop):
    runs = laptop.user.home / "runs"
    run = laptop.types("run", "-q")
    laptop.types("wait", run, "-q")
    shutil.rmtree(runs)
    adopt(runs, RunRecord(run, "narval", "/far/away", "", 0.0, id="c" * 32))

    told = listed(laptop, run, "--on", "here")

    assert (told["cluster"], told["state"]) == ("here", "finished")
    assert len(remembered(runs)) == 2
    with pytest.raises(RabaskaError, match="several runs are called"):
        laptop.types("logs", run)
    laptop.types("forget", run, "--on", "narval")
    assert [each.cluster for each in remembered(runs)] == ["here"]


def test_the_last_run_of_this_computer_stays_the_newest(laptop, other):
    own = other.types("run", "-q")
    laptop.types("run", "-q")
    laptop.types("run", "-q")

    assert len(listed(other, "--all", "--on", "here")) == 3
    assert other.status("")["name"] == own


def test_runs_of_a_project_that_was_moved_are_still_its_own(laptop, tmp_path):
    run = laptop.types("run", "-q")
    laptop.types("wait", run, "-q")
    adopt(laptop.user.home / "runs", RunRecord("dogs-1", "narval", "/x", str(tmp_path), 9e9))
    moved = laptop.user.project.rename(tmp_path / "moved")
    laptop.project = moved

    assert laptop.status("")["name"] == run
    assert laptop.types("fetch") == str(moved / "results" / run)
    assert not laptop.user.project.exists()


def test_from_python_too(laptop, other):
    run = laptop.types("run", "-q")
    laptop.types("wait", run, "-q")

    other.goes_there()
    assert api.status(run, on="here").name == run
    assert [each.name for each in api.statuses(on="here")] == [run]


def test_a_run_whose_folder_was_deleted_is_gone_and_its_jobs_can_be_cancelled(laptop):
    laptop.says("600", command="sleep")
    run = laptop.types("run", "-q", "--no-doctor")
    until(laptop, run, "running")
    shutil.rmtree(laptop.user.home / "store" / "runs" / run)

    ended = laptop.types("wait", run)  # it ends
    with pytest.raises(RabaskaError, match=f"run {run} is not on here"):
        laptop.types("resume", run)
    laptop.types("cancel", run)

    assert f"{run} on here  gone: its folder" in ended
    cancelled = laptop.user.home / "store" / "queue" / "jobs" / "1" / "cancel"
    assert cancelled.exists()
