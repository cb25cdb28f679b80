"""A run of several jobs on this computer ends as the same training does without rabaska."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_kill_campaign import processes_of

import rabaska
from rabaska.domain.runs import RunState

pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.timeout(600)]

PLAIN = Path(__file__).parents[1] / "training" / "exact" / "plain.py"

SETTINGS = """
name = "exact"
command = "python train.py {checkpoints}"

[resources]
walltime = "10m"

[chain]
jobs = 9

[environment]
variables = { OMP_NUM_THREADS = "1" }
"""


def left_by(weights, metrics):
    return (weights / "weights").read_text(), (metrics / "metrics.jsonl").read_text()


def killed_after_a_new_checkpoint(run, victim):
    """Kill part of a run once it has saved something that was not there before."""
    before = saved(run)
    while saved(run) == before:
        if rabaska.status(run).state is RunState.FINISHED:
            return
        time.sleep(0.05)
    pid = processes_of(run).get(victim)
    if pid:
        os.kill(pid, signal.SIGKILL)


def saved(run):
    found = rabaska.status(run).checkpoint
    return found.path if found else None


def test_kills_of_program_and_agent_leave_no_trace_in_weights_and_losses(
    user, tmp_path, monkeypatch
):
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    shutil.copy(PLAIN, user.project / "train.py")
    user.write("rabaska.toml", SETTINGS)
    subprocess.run(
        [sys.executable, PLAIN, tmp_path / "undisturbed"],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True,
    )  # fmt: skip

    run = rabaska.run(user.project).run
    for victim in ("program", "agent"):
        killed_after_a_new_checkpoint(run, victim)
    ended = rabaska.wait(run)
    while ended.state is not RunState.FINISHED:
        rabaska.resume(run)
        ended = rabaska.wait(run)

    carried = Path(ended.path) / "output" / ".."
    assert len(ended.jobs) >= 2
    assert left_by(carried / "checkpoints", carried / "output") == left_by(
        tmp_path / "undisturbed", tmp_path / "undisturbed"
    )
