"""The campaign's runs of the cluster `here`, whose program or agent is killed at any moment."""

import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import plain

import rabaska
from rabaska.domain.runs import RunState

SETTINGS = """
name = "campaign"
command = "{python} train.py {{checkpoints}} {words}"

[resources]
walltime = "1h"

[chain]
links = 20

[environment]
variables = {{ OMP_NUM_THREADS = "1" }}
"""


def one_run(folder, words, chance, kills):
    """What a run left that was killed `kills` times, and the counts of what was done to it."""
    os.environ["RABASKA_HOME"] = str(folder / "home")
    project = folder / "project"
    project.mkdir(parents=True)
    shutil.copy(plain.__file__, project / "train.py")
    (project / "rabaska.toml").write_text(
        SETTINGS.format(python=sys.executable, words=" ".join(words))
    )
    run, done = rabaska.run(project).run, Counter()
    while (told := rabaska.status(run)).state is not RunState.FINISHED:
        if told.state.over:
            rabaska.resume(run)
        elif told.links and done["kills on here"] < kills:
            time.sleep(chance.uniform(0.0, 4.0))
            done += kill(told, chance.choice(["program", "agent"]))
        else:
            time.sleep(0.5)
    left = Path(told.path) / "output" / ".."
    return ((left / "checkpoints" / "weights").read_text(),
            (left / "output" / "metrics.jsonl").read_text()), done  # fmt: skip


def kill(told, victim):
    link = told.links[-1]
    pid = link.pid if victim == "agent" else program_of(told.path, link.number)
    if link.how or pid is None:
        return Counter()  # it is over, or has not begun
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return Counter()
    return Counter({"kills on here": 1, f"kills of the {victim} there": 1})


def program_of(path, number):
    lines = (Path(path) / "events.jsonl").read_text().splitlines()
    started = [event for event in map(json.loads, lines) if event["event"] == "started"]
    return next((event["pid"] for event in started if event["link"] == number), None)
