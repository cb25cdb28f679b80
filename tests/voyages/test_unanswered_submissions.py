"""A scheduler that takes its time, and commands that do not: one run gets one chain of jobs."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.voyages.conftest import end_everything_of
from tests.voyages.test_other_schedulers import guest  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow

SUBMITS = {"pbs": "qsub", "moab": "msub"}
# Notes that it was called, and goes on when somebody lets it; what it prints may be lost then.
SLOW = """#!/bin/sh
echo called >> {folder}/calls
while [ ! -e {folder}/go ]; do sleep 0.05; done
exec {real} "$@"
"""


class Slow:
    """The submit command of a guest's scheduler."""

    def __init__(self, someone):
        self.folder = someone.programs
        self.command = self.folder / SUBMITS[someone.scheduler]
        real = self.folder / "lib" / self.command.name
        self.command.rename(real)
        self.command.write_text(SLOW.format(folder=self.folder, real=real))
        self.command.chmod(0o755)

    @property
    def calls(self):
        path = self.folder / "calls"
        return path.read_text().count("called") if path.exists() else 0

    def wait_for_a_call(self):
        end = time.monotonic() + 60
        while not self.calls:
            assert time.monotonic() < end
            time.sleep(0.05)

    def go_on(self):
        (self.folder / "go").touch()

    def jobs(self):
        return list((self.folder / "spool").glob("*.json"))


@pytest.mark.parametrize("guest", SUBMITS, indirect=True)
def test_a_submission_under_way_is_a_state_and_never_made_again(guest):  # noqa: F811
    slow = Slow(guest)
    process = guest.start("run", "--on", "there", "--jobs", "1", "--no-doctor", process_group=0)
    slow.wait_for_a_call()
    os.killpg(process.pid, signal.SIGKILL)  # as when its terminal is closed
    process.communicate()

    under_way = guest.status()
    refused = guest.types("resume", code=2)
    slow.go_on()
    later = guest.until(lambda told: told["state"] != "submitting")

    assert under_way["state"] == "submitting"
    assert f"{slow.command.name} has not answered for" in under_way["reason"]
    assert "is being submitted" in refused.errors
    assert later["state"] in ("queued", "running", "finished")
    guest.types("wait")
    assert (slow.calls, len(slow.jobs())) == (1, 1)


@pytest.mark.parametrize("guest", SUBMITS, indirect=True)
def test_a_job_whose_submission_was_killed_is_found_by_its_name(guest):  # noqa: F811
    (guest.programs / "go").touch()
    slow = Slow(guest)
    real = slow.folder / "lib" / slow.command.name
    everyone = "kill -9 $PPID $(cut -d' ' -f4 /proc/$PPID/stat)"
    slow.command.write_text(f'#!/bin/sh\n{real} "$@" >/dev/null\n{everyone}\n')
    guest.start("run", "--on", "there", "--jobs", "1", "--no-doctor").communicate()
    slow.command.unlink()
    real.rename(slow.command)

    told = guest.status()

    assert told["state"] in ("queued", "running", "finished")
    assert told["job_id"] or told["jobs"]  # a job that began is proof enough
    guest.types("wait")
    assert len(slow.jobs()) == 1


@pytest.mark.parametrize("guest", ["pbs"], indirect=True)
def test_run_says_what_it_waits_for(guest):  # noqa: F811
    slow = Slow(guest)
    process = guest.start("run", "--on", "there", "--jobs", "1", "--no-doctor")
    slow.wait_for_a_call()

    told = ""
    while "waiting for there to answer its submission" not in told:
        line = process.stderr.readline()
        assert line, told
        told += line
    slow.go_on()

    assert process.wait() == 0
    process.communicate()


@pytest.mark.parametrize("guest", ["pbs"], indirect=True)
def test_two_that_resume_at_once_submit_one_chain(guest):  # noqa: F811
    run = guest.types("run", "--on", "there", "--jobs", "1", "--", "--hold", "1").output.strip()
    guest.until(lambda told: told["checkpoint"] is not None, run)
    guest.types("cancel", run)
    guest.until(lambda told: told["state"] == "cancelled", run)
    slow = Slow(guest)

    both = [guest.start("resume", run, "--jobs", "1") for _ in range(2)]
    slow.wait_for_a_call()
    time.sleep(1)
    slow.go_on()
    codes = sorted(process.wait() for process in both)
    said = [process.communicate()[1] for process in both]

    assert slow.calls == 1, said
    assert codes == [0, 2], said
    guest.types("wait", run)


@pytest.mark.parametrize("guest", ["pbs"], indirect=True)
def test_a_run_that_is_cancelled_while_it_is_submitted_leaves_no_job(guest):  # noqa: F811
    slow = Slow(guest)
    process = guest.start("run", "--on", "there", "--jobs", "1", "--no-doctor")
    slow.wait_for_a_call()
    cancelling = guest.start("cancel")
    guest.until(lambda told: told["state"] == "stopping")
    slow.go_on()

    for command in (process, cancelling):
        said = command.communicate()
        assert command.returncode == 0, said
    told = guest.until(lambda told: told["state"] == "cancelled")
    assert told["checkpoint"] is None


# What a run leaves, one after another: its name here, its folder there, its intention to submit.
SIGNS = ("runs/*.json", "store/runs/*/run.json", "store/runs/*/submissions.jsonl")


def killed_after(user, folder, number):
    """How a run ended, and its jobs, whose `run` was killed soon after one of the signs.

    Then somebody does what `status` advises.
    """
    someone = replace(user, home=folder / f"home-{number}")
    process = someone.start("run", "--no-doctor", "--jobs", "1", process_group=0)
    while not list(someone.home.glob(SIGNS[number % 3])):
        time.sleep(0.01)
    time.sleep(0.1 * (number // 3))
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    told = someone.until(lambda told: told["state"] != "submitting", seconds=120)
    if "forget" in told["hint"]:
        return "never submitted", 0  # killed before it had a folder
    if told["state"] == "interrupted":
        someone.types("resume")
    someone.types("wait")
    return someone.status()["state"], len(list((someone.home / "store/queue/jobs").iterdir()))


def test_run_is_killed_at_any_moment_and_there_is_one_job(user, tmp_path):
    try:
        with ThreadPoolExecutor(2) as at_once:
            outcomes = list(at_once.map(lambda each: killed_after(user, tmp_path, each), range(6)))
    finally:
        end_everything_of(tmp_path)

    assert set(outcomes) <= {("never submitted", 0), ("finished", 1)}
    assert ("finished", 1) in outcomes
