"""The numbers of a run on this computer, of which a job is killed: no gap, no double point."""

import os
import signal
from pathlib import Path

import pytest
from tests.node.series import written

from rabaska.records.series_files import read_series
from rabaska.settings.own_settings import write_wandb_consent

pytestmark = pytest.mark.slow

TRAIN = """
import json, os, sys, time
output = os.environ["RABASKA_OUTPUT"]
saved, step = os.path.join(output, "checkpoint.json"), 0
if os.path.exists(saved):
    step = json.load(open(saved))["step"]
table = open(os.path.join(output, "metrics.csv"), "a")
if table.tell() == 0:
    table.write("epoch,step,train_loss\\n")
while step < 120:
    step += 1
    table.write("0,%d,%r\\n" % (step, 1 / step))
    table.flush()
    print("step", step, "accuracy", 1 - 1 / step, flush=True)
    if step % 20 == 0:
        json.dump({"step": step}, open(saved + ".tmp", "w"))
        os.replace(saved + ".tmp", saved)
    time.sleep(0.02)
    while step == 70 and os.environ["RABASKA_JOB"] == "1":
        time.sleep(0.1)  # until it is killed
"""


def test_a_killed_job_leaves_no_gap_and_no_double_point(user):
    (user.project / "train.py").write_text(TRAIN)
    (user.project / "rabaska.toml").write_text(
        'name = "tiny"\ncommand = "python train.py"\n[resources]\nwalltime = "30s"\n'
        '[chain]\njobs = 3\n[checkpoints]\npatterns = ["checkpoint.json"]\n'
    )
    run = user.types("run").output.split()[-1]
    told = user.until(lambda now: now["jobs"] and now["jobs"][0]["last_step"] == 70, run)

    os.kill(told["jobs"][0]["pid"], signal.SIGKILL)
    ended = user.types("wait", run).output

    curves = read_series(Path(user.status(run)["path"]))
    assert sorted(curves) == ["accuracy", "train_loss"]
    for curve in curves.values():
        assert list(curve.steps) == list(range(1, 121))
        assert list(curve.times) == sorted(curve.times)
    assert "▁" in ended
    assert "step 119 " in user.types("logs", run, "--grep", r"step 11\d", "--since", "1h").output


LOGS = """
import os, time, written
log = os.path.join(os.environ["WANDB_DIR"], "wandb", "offline-run-1-abc", "run-abc.wandb")
os.makedirs(os.path.dirname(log))
for count in (1, 20, 40):
    with open(log, "wb") as stream:
        lines = [written.wandb_record(n, {"loss": n}) for n in range(count)]
        stream.write(written.wandb_log(lines))
    time.sleep(1)
while not os.path.exists(GATE):
    time.sleep(0.05)
"""


def test_what_wandb_logs_offline_is_uploaded_while_the_run_is_watched(user, tmp_path, monkeypatch):
    asked = tmp_path / "asked"
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "wandb"
    program.write_text(f'#!/bin/sh\necho "$@" >> {asked}\ntouch {user.gate}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    user.write("train.py", f"GATE = {str(user.gate)!r}\n{LOGS}")
    user.write("written.py", Path(written.__file__).read_text())
    (user.project / "rabaska.toml").write_text(
        'name = "tiny"\ncommand = "python train.py"\n'
        '[environment.variables]\nWANDB_MODE = "offline"\n'
    )
    user.home.mkdir(exist_ok=True)
    write_wandb_consent(user.home, sync=True)
    run = user.types("run", "--no-doctor").output.split()[-1]

    user.types("watch", run, "--plain")

    said = asked.read_text().splitlines()
    assert said
    assert all(one.endswith("trackers/output/wandb/offline-run-1-abc") for one in said)
    assert user.types("status", run, "--json").output.count('"finished"')
