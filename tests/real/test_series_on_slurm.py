"""Curves of a program that knows nothing of rabaska, on a real Slurm, seen from a laptop."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.node.series import written

pytestmark = [pytest.mark.real, pytest.mark.slow]

TRAIN = """
import argparse, json, os, time
import written
parser = argparse.ArgumentParser()
for name in ("--data", "--output", "--resume"):
    parser.add_argument(name)
args = parser.parse_args()
step = json.load(open(args.resume))["step"] if args.resume else 0
os.makedirs("runs", exist_ok=True)
events = open("runs/events.out.tfevents.%d" % os.getpid(), "ab")
table = open("metrics.csv", "a")
if table.tell() == 0:
    table.write("epoch,step,val_acc\\n")
while step < 60:
    step += 1
    events.write(written.event(step, **{"train/loss": 1 / step}))
    events.flush()
    table.write("0,%d,%r\\n" % (step, 1 - 1 / step))
    table.flush()
    print("step", step, "loss", round(1 / step, 4), "reward", step / 2, flush=True)
    if step % 10 == 0:
        name = os.path.join(args.output, "checkpoint-%04d.json" % step)
        json.dump({"step": step}, open(name + ".tmp", "w"))
        os.replace(name + ".tmp", name)
    time.sleep(0.03)
    while step == 40 and os.environ["RABASKA_JOB"] == "1":
        time.sleep(0.1)  # until it is cancelled
"""
# The curves as `watch` and others see them, while the run goes on and then without any cluster.
LOOK = """
import json, sys
from rabaska.records.home import home
from rabaska.records.run_index import remembered
from rabaska.steps.live_runs import LiveRuns
live = LiveRuns(remembered(home().runs), home())
(now,) = live.last_seen() if sys.argv[1:] == ["away"] else live.refresh()
curves = live.series(now.record)
print(json.dumps([now.status.state.value, {name: list(one.steps) for name, one in curves.items()}]))
"""


def looks(voyager, *words):
    done = subprocess.run(
        [sys.executable, "-c", LOOK, *words],
        env=voyager.environment,
        check=True,
        stdout=subprocess.PIPE,
    )
    return json.loads(done.stdout)


def test_the_curves_of_an_unmodified_program_come_over_ssh_without_a_gap(lab, voyager):
    voyager.write("train.py", TRAIN)
    voyager.write("written.py", Path(written.__file__).read_text())
    run = voyager.run()
    told = voyager.until(lambda now: now["jobs"] and now["jobs"][0]["last_step"] == 40, run)

    _, early = looks(voyager)
    lab.run_as_user(["scancel", told["jobs"][0]["id"]])
    voyager.types("wait", run)
    state, late = looks(voyager)

    assert "train/loss" in early
    assert state == "finished"
    assert sorted(late) == ["reward", "train/loss", "val_acc"]
    assert all(steps == list(range(1, 61)) for steps in late.values())
    assert looks(voyager, "away") == [state, late]
