"""Runs that go on at a real cluster, with other requests, and are deleted there."""

import json

import pytest

pytestmark = pytest.mark.real


def test_a_run_goes_from_here_to_slurm_is_repeated_there_and_deleted(voyager):
    run = voyager.types("run", "--on", "here", "--", "--gate", str(voyager.gate)).output.strip()
    voyager.until(lambda status: status["checkpoint"] is not None, run)
    voyager.types("cancel", run)
    voyager.until(lambda status: status["state"] == "cancelled", run)
    voyager.let_go()

    said = voyager.types("resume", run, "--on", "lab", "--memory", "300MB", "--jobs", "1")

    new = said.output.strip()
    ended = json.loads(voyager.types("wait", new, "--json").output)
    assert ended["state"] == "finished", ended
    assert ended["jobs"][0]["resumed_from"]
    assert ended["about"]["resources"]["memory"] == 300_000_000
    assert "memory: none -> 300 MB" in said.errors
    again = voyager.types("rerun", new, "--from-checkpoint", "--", "--steps", "40")
    longer = again.output.strip()
    assert "--steps 40" in again.errors
    assert json.loads(voyager.types("wait", longer, "--json").output)["jobs"][0]["resumed_from"]
    assert "not fetched" in voyager.types("delete", new, code=2).errors
    voyager.types("delete", new, longer, "--yes", "--fetch")
    kept = {file.name for file in (voyager.project / "results" / longer / "output").iterdir()}
    assert {"checkpoint-0005.json", "checkpoint-0040.json"} <= kept
    assert not voyager.lab.path(f"{voyager.store}/runs/{new}").exists()
    assert not voyager.lab.path(f"{voyager.store}/runs/{longer}").exists()
