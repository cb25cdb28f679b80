"""SIGKILL at random moments over the keeper, the agent and the program: nothing is lost.

`make kills KILLS=200` runs the long form; the suite runs a short one.
"""

import json
import os
import random
import time
from pathlib import Path

import pytest
from tests.training.exact.harm import kill

import rabaska
from rabaska.domain.runs import RunState

KILLS = int(os.environ.get("KILLS", "10"))

# Proves that it is alone by a lock the kernel frees with the process, and saves every 5 steps.
TRAIN = """
import argparse, fcntl, json, os, sys, time

parser = argparse.ArgumentParser()
parser.add_argument("--output")
parser.add_argument("--resume")
parser.add_argument("--witness")
args = parser.parse_args()

lock = open(args.witness + ".lock", "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    open(args.witness + ".two-writers", "w").write(str(os.getpid()))
    sys.exit(1)

step = json.load(open(args.resume))["step"] if args.resume else 0
while step < 400:
    step += 1
    time.sleep(0.02)
    print("step", step)
    if step % 5 == 0:
        name = os.path.join(args.output, "checkpoint-%04d.json" % step)
        with open(name + ".tmp", "w") as f:
            json.dump({"step": step}, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(name + ".tmp", name)
        with open(args.witness + ".saved", "w") as f:
            f.write(str(step))
        if step > 15:
            try:
                os.unlink(os.path.join(args.output, "checkpoint-%04d.json" % (step - 15)))
            except FileNotFoundError:
                pass
print("done")
"""

SETTINGS = """
name = "campaign"
command = "python train.py --output {{output}} --resume {{checkpoint}} --witness {witness}"

[resources]
walltime = "1h"

[chain]
jobs = 50

[checkpoints]
patterns = ["checkpoint-*.json"]
"""


@pytest.fixture
def witness(user, monkeypatch):
    """Where the program leaves its proofs, outside everything rabaska manages."""
    proofs = user.project.parent / "witness"
    user.write("train.py", TRAIN)
    user.write("rabaska.toml", SETTINGS.format(witness=proofs))
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    return proofs


@pytest.mark.slow
@pytest.mark.timeout(60 + 30 * KILLS)
def test_no_kill_loses_a_run_or_a_checkpoint_or_lets_two_programs_write(user, witness):
    chance = random.Random(os.environ.get("SEED", "20261115"))
    kills = {"keeper": 0, "agent": 0, "program": 0}
    run = rabaska.run(user.project).run
    while sum(kills.values()) < KILLS:
        time.sleep(chance.uniform(0.0, 2.0))
        victim = chance.choice(sorted(kills))
        pid = processes_of(run).get(victim)
        if pid and kill(pid):
            kills[victim] += 1
        run = checked(run, user, witness)

    ended = finish(run)

    assert ended.state is RunState.FINISHED
    assert not Path(f"{witness}.two-writers").exists()
    print("kills:", kills, "jobs of the last run:", len(ended.jobs))


def checked(run, user, witness):
    """The run to go on with, after everything status says was held against the truth."""
    saved = saved_step(witness)
    told = settled(run)
    alive = processes_of(run)
    if told.state is RunState.FINISHED:
        Path(f"{witness}.saved").unlink(missing_ok=True)
        return rabaska.run(user.project).run
    if told.state in (RunState.INTERRUPTED, RunState.FAILED):
        assert "program" not in alive, f"{told.state} but {alive}"
        assert newest_step(told) >= saved
        rabaska.resume(run)
    else:
        assert told.state in (RunState.RUNNING, RunState.QUEUED), told
    return run


def settled(run):
    """The status once what was killed had a moment to be noticed."""
    for _ in range(100):
        told = rabaska.status(run)
        idle = told.state in (RunState.INTERRUPTED, RunState.FAILED)
        if not (idle and "program" in processes_of(run)):
            return told
        time.sleep(0.1)
    raise AssertionError(f"a program goes on though the run is {told.state}")


def finish(run):
    while True:
        ended = rabaska.wait(run)
        if ended.state is RunState.FINISHED:
            return ended
        rabaska.resume(run)


def saved_step(witness):
    try:
        return int(Path(f"{witness}.saved").read_text() or 0)
    except FileNotFoundError:
        return 0


def newest_step(told):
    if told.checkpoint is None:
        return 0
    return json.loads((Path(told.path) / "output" / ".." / told.checkpoint.path).read_bytes())[
        "step"
    ]


def processes_of(run):
    """The pids of the run's keeper, agent and program, as the kernel knows them."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parent = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent[0] == "Z" or not any(run.encode() in word for word in words):
            continue
        if b"run" in words and words[-2].endswith(f"/{run}".encode()):
            found["agent"], found["keeper"] = int(entry.name), int(parent[1])
        elif any(word.endswith(b"train.py") for word in words):
            found["program"] = int(entry.name)
    return {name: pid for name, pid in found.items() if pid > 1}
