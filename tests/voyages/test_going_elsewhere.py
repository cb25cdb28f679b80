"""A run that stopped on one cluster goes on at another, with all it had."""

import json
import sys

import pytest
from tests.stand_ins.install import install
from tests.voyages.test_other_schedulers import Guest, _write

pytestmark = pytest.mark.slow


@pytest.fixture
def guest(user):
    """A user who has the cluster `there` beside this computer."""
    someone = Guest(user.project, user.home, "torque")
    folder = someone.programs
    install(someone.scheduler, str(folder), str(folder / "spool"), sys.executable, _write)
    profile = someone.home / "clusters" / "there.toml"
    profile.parent.mkdir()
    profile.write_text(
        'title = "A stand-in"\nscheduler = "torque"\n'
        f'[storage]\nstore = "{user.home.parent}/far-store"\n'
    )
    return someone


def test_a_run_goes_on_at_another_cluster_and_the_old_one_says_where(guest):
    run = guest.types("run", "--", "--gate", str(guest.gate)).output.strip()
    guest.until(lambda status: status["checkpoint"] is not None, run)
    guest.types("cancel", run)
    guest.until(lambda status: status["state"] == "cancelled", run)
    guest.gate.touch()
    (guest.project / "train.py").write_text("raise SystemExit('this is not the code of the run')\n")

    said = guest.types("resume", run, "--on", "there", "--walltime", "50s", "--jobs", "1")

    new = said.output.strip()
    assert f"run {run}: continues as {new} on there" in said.errors
    assert "cluster: here -> there" in said.errors
    assert "walltime: 60 s -> 50 s" in said.errors
    ended = json.loads(guest.types("wait", new, "--json").output)
    assert ended["state"] == "finished"
    assert ended["jobs"][0]["resumed_from"]
    assert ended["about"]["like"] == f"{run} on here"
    guest.types("fetch", new)
    kept = {file.name for file in (guest.project / "results" / new / "output").iterdir()}
    assert {"checkpoint-0005.json", "checkpoint-0030.json", "result.json"} <= kept
    assert guest.status(run)["moved"] == f"{new} on there"
    assert f"it went on as: {new} on there" in guest.types("status", run).output
    assert f"went on as {new} on there" in guest.types("resume", run, code=2).errors
