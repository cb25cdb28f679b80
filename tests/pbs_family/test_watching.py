"""Vitals, curves, memory, mail and expected start of runs on a real Torque or OpenPBS."""

import os
import sys
from pathlib import Path

import pytest
from tests.pbs_family.test_journeys import to_its_end
from tests.real.test_phases import GREEDY_SETTINGS
from tests.screen.terminal import Tmux

# Slow enough for who looks at its memory every second or two.
GREEDY = """
import time
held = []
print("step 1", flush=True)
while True:
    held.append(bytearray(8 * 2**20))
    time.sleep(0.05)
"""


def test_vitals_and_curves_of_a_run_are_shown_and_fetched(passenger):
    run = passenger.run("--jobs", "1", "--", "--steps", "400", "--pause", "0.05")
    told = passenger.until(lambda now: now["vitals"] and now["curve"], run)
    node = told["jobs"][0]["host"]
    passenger.types("wait", run)

    assert list(told["vitals"]) == [node]
    assert told["vitals"][node]["processes"] > 0
    assert told["curve"]["name"] == "loss"
    folder = Path(passenger.types("fetch", run).output.strip())
    vitals = (folder / "run" / "vitals" / f"job-001-{node}.tsv").read_text()
    assert vitals.startswith("# rabaska series")
    assert "loss" in (folder / "run" / "series" / "job-001.tsv").read_text()


def test_a_run_is_watched_in_a_terminal(passenger):
    run = passenger.run("--jobs", "1", "--", "--every", "5", "--hold", "1")
    own = {name: passenger.environment[name] for name in ("RABASKA_HOME", "PATH")}
    own["XDG_RUNTIME_DIR"] = str(passenger.sockets)
    command = f"{sys.executable} -m rabaska watch {run}"
    window = Tmux(passenger.project, command, environment={**own, "LC_ALL": "C.UTF-8"})
    try:
        window.shows(f"{run} on lab  running", "─ loss", seconds=120)
        window.types("c")
        window.shows("Cancel")
        window.types("y")
        window.shows(f"{run} on lab  cancelled", seconds=120)
        window.types("q")
        window.shows("ended 0")
    finally:
        window.end()


def test_lines_are_printed_until_a_run_has_ended(passenger):
    run = passenger.run("--jobs", "1")

    said = passenger.types("watch", run).output

    assert f"{run} finished" in said.splitlines()[-1]


def test_a_job_out_of_memory_ends_the_run_with_the_line_to_change(cluster, passenger):
    passenger.write("train.py", GREEDY)
    passenger.write("rabaska.toml", GREEDY_SETTINGS)
    run = passenger.run("--no-doctor")

    _, told = to_its_end(passenger, run)
    told = passenger.until(lambda now: now["state"] == "failed", run)

    assert [job["how"] for job in told["jobs"]] == ["out of memory"]
    assert "ran out of memory" in told["reason"]
    assert '`memory = "1 GB"` in [resources]' in told["hint"]
    assert "ran out of memory" in passenger.types("explain", run).output
    cluster.wait_until(lambda: not cluster.jobs())


def test_the_server_sends_mail_to_the_address_of_the_project(cluster, passenger):
    passenger.add_settings('[notify]\nmail = "ada@uni.example"\n')
    run = passenger.run("--jobs", "1")
    passenger.types("wait", run)

    number = passenger.status(run)["jobs"][0]["id"]
    cluster.wait_until(lambda: cluster.mails().count(f"PBS Job Id: {number}.control") == 2)
    assert "ada@uni.example" in cluster.mails()
    assert "Begun execution" in cluster.mails()
    assert "Execution terminated" in cluster.mails()


@pytest.mark.skipif(os.environ.get("BATCH_SYSTEM") != "pbs", reason="Torque does not tell it")
def test_when_a_waiting_job_may_start_is_told(cluster, passenger):
    passenger.settings(walltime='"2m"\ncores = 4')  # all of a node
    blocking = [passenger.run("--jobs", "1", "--", "--every", "1", "--hold", "1") for _ in range(2)]
    for run in blocking:
        passenger.until(lambda now: now["state"] == "running", run)
    run = passenger.run("--jobs", "1")

    told = passenger.until(lambda now: now["waiting"] and now["waiting"].get("starts"), run)

    assert told["state"] == "queued"
    assert "expected to start" in passenger.types("status", run).output
    for each in (*blocking, run):
        passenger.types("cancel", each)
