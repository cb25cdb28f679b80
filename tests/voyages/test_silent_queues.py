"""Runs whose scheduler falls silent, or keeps no history: nothing that goes on is given up."""

import os
import signal

import pytest
from tests.voyages.test_other_schedulers import _write, guest

__all__ = ["guest"]

pytestmark = pytest.mark.slow

ASKED = {"pbs": "qstat", "torque": "qstat", "moab": "showq", "sqsub": "sqjobs"}


@pytest.mark.parametrize("complaint", ["", "a cached answer could not be read"])
def test_a_silent_queue_is_not_an_empty_one(guest, complaint):
    guest.write("train.py", "import time; print('hello'); time.sleep(60)")
    guest.settings(command='"python train.py"')
    run = guest.run("--jobs", "1")
    guest.until(lambda status: "hello" in status["tail"], run)
    command = guest.programs / ASKED[guest.scheduler]
    command.rename(command.with_suffix(".real"))

    _write(command, f"#!/bin/sh\necho '{complaint}' >&2\n")
    told = guest.status(run)

    assert told["state"] in ("running", "unknown")
    guest.types("cancel", run, code=None)


@pytest.mark.parametrize("guest", ["pbs"], indirect=True)
def test_a_server_that_keeps_no_history_ends_no_run_before_its_time(guest):
    run = guest.run("--jobs", "3", "--", "--every", "1", "--hold", "1", "--steps", "8")
    states = set()
    told = guest.until(lambda now: states.add(now["state"]) or now["checkpoint"], run)

    os.kill(told["jobs"][0]["pid"], signal.SIGKILL)
    guest.until(lambda now: states.add(now["state"]) or now["state"] == "finished", run)

    assert states <= {"queued", "running", "finished"}


@pytest.mark.parametrize("guest", ["pbs"], indirect=True)
def test_jobs_that_went_with_a_deleted_one_are_grown_again(guest):
    words = ("--every", "1", "--hold", "1", "--steps", "8")
    run = guest.run("--walltime", "15s", "--jobs", "3", "--", *words)
    guest.until(lambda now: now["checkpoint"], run)

    job = guest.status(run)["job_id"].split()[1]
    guest.command("qdel", job)
    guest.types("wait", run)

    told = guest.status(run)
    assert told["state"] == "finished"
    assert told["extended"]["jobs"] >= 1
