"""Whole journeys on the schedulers that stand-ins play: chain, kill, fetch, cancel, refusals."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.stand_ins.install import install
from tests.voyages.conftest import User
from tests.voyages.slow_to_save import SLOW_TO_SAVE

pytestmark = pytest.mark.slow

SCHEDULERS = ("pbs", "torque", "moab", "sqsub")


@dataclass(frozen=True)
class Guest(User):
    """A user at a computer where another scheduler runs the jobs."""

    scheduler: str

    @property
    def environment(self):
        inherited = super().environment
        return {**inherited, "PATH": f"{self.programs}{os.pathsep}{inherited['PATH']}"}

    @property
    def programs(self):
        return self.home / "stand-in"

    def run(self, *words):
        return self.types("run", "--on", "there", *words).output.strip()

    def command(self, *words):
        """A command of the scheduler."""
        subprocess.run(words, env=self.environment, check=True)


@pytest.fixture(params=SCHEDULERS)
def guest(request, user):
    someone = Guest(user.project, user.home, request.param)
    folder = someone.programs
    install(someone.scheduler, str(folder), str(folder / "spool"), sys.executable, _write)
    profile = someone.home / "clusters" / "there.toml"
    profile.parent.mkdir()
    profile.write_text(f'title = "A stand-in"\nscheduler = "{someone.scheduler}"\n')
    return someone


def _write(path, text):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    Path(path).chmod(0o755)


@pytest.mark.thorough  # tests/real does the same over ssh
def test_a_chain_of_three_with_one_job_killed_is_finished_and_fetched(guest):
    limit = ("--walltime", "24s", "--jobs", "4")
    run = guest.run(*limit, "--", "--every", "1", "--hold", "2")
    told = guest.until(lambda status: status["checkpoint"] is not None, run)

    os.kill(told["jobs"][0]["pid"], signal.SIGKILL)
    guest.types("wait", run)

    told = guest.status(run)
    assert told["state"] == "finished"
    assert len(told["jobs"]) >= 3
    assert len({job["id"] for job in told["jobs"]}) == len(told["jobs"])
    assert told["jobs"][1]["how"] == "time limit"
    folder = guest.types("fetch", run).output.strip()
    with open(f"{folder}/output/result.json") as result:
        assert json.load(result) == {"final": 30}


def test_a_cancelled_run_takes_its_waiting_jobs_along(guest):
    run = guest.run("--", "--pause", "0.1", "--steps", "400")
    guest.until(lambda status: status["checkpoint"] is not None, run)

    guest.types("cancel", run)

    told = guest.until(lambda status: status["state"] == "cancelled", run)
    assert len(told["jobs"]) == 1
    assert told["checkpoint"] is not None


def test_a_job_that_is_cancelled_saves_before_it_is_deleted(guest):
    guest.write("train.py", SLOW_TO_SAVE)
    guest.settings(command='"python train.py {output}"')
    run = guest.run()
    guest.until(lambda status: "ready" in status["tail"], run)

    said = guest.types("cancel", run)

    told = guest.until(lambda status: status["state"] == "cancelled", run)
    assert told["checkpoint"]["path"].endswith("checkpoint-0001.json")
    assert [job["how"] for job in told["jobs"]] == ["cancelled"]
    assert "no job of it any more" not in said.errors


SEARCH = """
[search]
metric = "loss"
method = "grid"
at_once = 2
[search.space]
every = [1, 2, 3]
"""


@pytest.mark.parametrize(
    "guest",
    ["pbs", *(pytest.param(name, marks=pytest.mark.thorough) for name in SCHEDULERS[1:])],
    indirect=True,
)
def test_workers_of_a_search_are_chained_jobs_where_there_are_no_arrays(guest):
    guest.write("rabaska.toml", (guest.project / "rabaska.toml").read_text() + SEARCH)
    gate = guest.project / "gate"
    words = ("--no-doctor", "--", "--gate", str(gate))
    started = guest.types("search", "run", "--on", "there", "--json", *words)

    jobs = json.loads(started.output)["jobs"]
    found = _search_until(guest, lambda found: len(found["trials"]) == 2)
    gate.touch()
    last = _search_until(guest, lambda found: found["state"] not in ("running", "queued"))

    assert len(jobs) == 2 * 3  # places, each with the jobs of [chain]
    assert (found["state"], found["workers"]["running"]) == ("running", 2)
    assert last["state"] == "finished"
    assert [one["state"] for one in last["trials"]] == ["finished"] * 3


def _search_until(guest, is_so, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = json.loads(guest.types("search", "status", "--json").output)
        if is_so(found):
            return found
        time.sleep(0.1)
    raise AssertionError(f"still waiting: {found}")


@pytest.mark.thorough
def test_a_run_out_of_jobs_is_resumed(guest):
    words = ["--pause", "0.1", "--steps", "100", "--every", "1"]
    run = guest.run("--walltime", "8s", "--jobs", "1", "--", *words)
    guest.until(lambda status: status["state"] == "interrupted", run)

    guest.types("resume", run, "--jobs", "3")
    guest.types("wait", run)

    assert guest.status(run)["state"] == "finished"


def test_the_log_of_a_job_is_there_while_it_runs(guest):
    guest.write("train.py", "import time; print('hello'); time.sleep(60)")
    guest.settings(command='"python train.py"')
    run = guest.run()

    told = guest.until(lambda status: "hello" in status["tail"], run)

    assert told["state"] == "running"
    guest.types("cancel", run)


@pytest.mark.parametrize("guest", ["pbs", "torque", "moab"], indirect=True)
def test_a_refusal_quotes_the_scheduler(guest):
    with (guest.project / "rabaska.toml").open("a") as settings:
        settings.write('\n[cluster.there]\nqueue = "nosuch"\n')

    refused = guest.types("run", "--on", "there", code=7)

    assert "Unknown queue" in refused.errors


@pytest.mark.parametrize("guest", ["sqsub"], indirect=True)
def test_what_a_scheduler_cannot_do_is_said_before_it_runs_and_while_it_does(guest):
    with (guest.project / "rabaska.toml").open("a") as settings:
        settings.write('\n[cluster.there]\naccount = "abc-123-aa"\n')

    rehearsed = guest.types("run", "--on", "there", "--dry-run")
    guest.run()

    assert "sqsub knows no accounts" in rehearsed.errors
    assert "note: sqsub knows no accounts" in guest.types("status").output


@pytest.mark.parametrize("guest", ["torque"], indirect=True)
def test_jobs_that_a_queue_has_no_room_for_are_told_and_the_others_run(guest):
    _write(guest.programs / "spool" / "jobs-allowed", "2")

    said = guest.types("run", "--on", "there", "--jobs", "4")
    guest.types("wait")

    assert "job 3 of 4 was not taken: qsub said:" in said.errors
    assert "exceeds the queue limit" in said.errors
    assert guest.status()["state"] == "finished"


@pytest.mark.parametrize("guest", ["torque"], indirect=True)
def test_a_job_after_one_that_is_over_is_submitted_all_the_same(guest):
    guest.write("train.py", "import sys; sys.exit(3)")
    guest.settings(command='"python train.py"')
    (guest.programs / "qsub").rename(guest.programs / "qsub-at-once")
    slow = 'case "$*" in *depend*) sleep 6 ;; esac\nexec qsub-at-once "$@"\n'
    _write(guest.programs / "qsub", f"#!/bin/sh\n{slow}")

    guest.run("--jobs", "2")
    guest.types("wait", code=3)

    lines = (guest.home / "stand-in" / "spool").glob("*.json")
    told = guest.status()
    assert len(list(lines)) == 2
    assert (told["state"], len(told["jobs"])) == ("failed", 1)


def test_a_job_that_its_scheduler_forgot_hides_no_other_and_can_be_cancelled(guest):
    guest.write("train.py", "import time; time.sleep(60)")
    guest.settings(command='"python train.py"')
    forgotten, kept = guest.run("--jobs", "1"), guest.run("--jobs", "1")
    for run in (forgotten, kept):
        guest.until(lambda status: status["jobs"], run)

    first = min((guest.programs / "spool").glob("*.json"), key=lambda file: int(file.stem))
    first.unlink()

    every = json.loads(guest.types("status", "--all", "--json").output)
    told = {run["name"]: run["state"] for run in every}
    assert told[kept] == "running"
    assert told[forgotten] != "finished"
    guest.types("cancel", forgotten)  # its job leaves by itself
    guest.until(lambda status: status["state"] == "cancelled", forgotten)
    guest.types("cancel", kept)


@pytest.mark.parametrize("guest", ["moab"], indirect=True)
def test_a_plan_tells_when_moab_guesses_that_it_might_start(guest):
    profile = guest.home / "clusters" / "there.toml"
    profile.write_text(profile.read_text() + '[partitions.k80]\ngpus = 8\nwalltime = "12h"\n')

    planned = guest.types("plan", "--on", "there", "--total", "1h", "--gpus", "1").output

    assert "start    perhaps in 0:00:00, on " in planned


@pytest.mark.parametrize("guest", ["pbs", "torque"], indirect=True)
def test_doctor_asks_pbs_whether_the_queue_is_there(guest):
    with (guest.project / "rabaska.toml").open("a") as settings:
        settings.write('\n[cluster.there]\nqueue = "nosuch"\n')

    told = guest.types("doctor", "--on", "there", code=1).output

    assert "there would refuse the job" in told
    assert "Unknown queue nosuch" in told


@pytest.mark.parametrize("guest", ["torque", "moab"], indirect=True)
def test_a_probe_is_submitted_in_the_words_of_its_scheduler(guest):
    profile = guest.home / "clusters" / "there.toml"
    profile.write_text(profile.read_text() + "[nodes]\ninternet = true\n")

    told = json.loads(guest.types("clusters", "check", "there", "--probe", "--json", code=1).output)

    (fact,) = [each for each in told if each["key"] == "nodes.internet"]
    assert fact["found"] in ("true", "false")  # a job tried it, and told
