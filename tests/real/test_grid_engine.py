"""The main journey on a real Grid Engine over a real ssh: chain, kill, fetch, cancel, refusals."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.lab.fixtures import skip_or_fail
from tests.lab.grid_engine import GridEngine
from tests.lab.install import unavailable
from tests.needs.packages import GRID_ENGINE, LAB
from tests.real.conftest import Voyager
from tests.voyages.conftest import user
from tests.voyages.slow_to_save import SLOW_TO_SAVE

from rabaska.schedulers.sge import Sge

__all__ = ["user"]

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.xdist_group("grid engine")]

PROFILE = """
title = "Grid Engine"
scheduler = "sge"

[reach]
host = "lab"
options = ["-F", "{config}"]

[storage]
store = "$SCRATCH/{name}"
"""


@dataclass(frozen=True)
class Passenger(Voyager):
    def cancel_jobs(self):
        self.lab.run_as_user(["qdel", "-u", self.lab.user], check=False)


@pytest.fixture(scope="module")
def grid_engine():
    skip_or_fail(unavailable(LAB | GRID_ENGINE))
    with GridEngine() as running:
        yield running


@pytest.fixture
def passenger(grid_engine, tmp_path, user):
    someone = Passenger(user.project, user.home, grid_engine, Path(tempfile.mkdtemp()))
    someone.profile.parent.mkdir(parents=True)
    someone.profile.write_text(PROFILE.format(config=grid_engine.ssh_config, name=tmp_path.name))
    someone.settings()
    yield someone
    someone.leave()


def test_a_chain_of_three_with_one_job_killed_is_finished_and_fetched(grid_engine, passenger):
    limit = ("--walltime", "24s", "--jobs", "4")
    run = passenger.run(*limit, "--", "--every", "1", "--hold", "2")
    told = passenger.until(lambda status: status["checkpoint"] is not None, run)

    grid_engine.world.run(["kill", "-KILL", str(told["jobs"][0]["pid"])])
    passenger.types("wait", run)

    jobs = passenger.status(run)["jobs"]
    assert passenger.status(run)["state"] == "finished"
    assert len(jobs) >= 3
    assert jobs[0]["how"] in ("lost", "killed", "cancelled")
    assert jobs[1]["how"] == "time limit"
    assert [job["id"] for job in jobs] == [f"{jobs[0]['id'][:-1]}{n + 1}" for n in range(len(jobs))]
    folder = passenger.types("fetch", run).output.strip()
    with open(f"{folder}/output/result.json") as result:
        assert json.load(result) == {"final": 30}


SEARCH = """
[search]
metric = "loss"
method = "grid"
at_once = 2
[search.space]
every = [1, 2, 3]
"""


def test_a_search_has_an_array_for_each_place_and_takes_what_is_not_needed_out(passenger):
    passenger.add_settings(SEARCH)

    words = ("search", "run", "--on", "lab", "--no-doctor", "--json")
    jobs = json.loads(passenger.types(*words).output)["jobs"]
    passenger.lab.wait_until(lambda: _searched(passenger)["state"] == "finished", patience=90)

    found = _searched(passenger)
    assert len(jobs) == 2
    assert [one["state"] for one in found["trials"]] == ["finished"] * 3
    passenger.lab.wait_until(lambda: not any(_searched(passenger)["workers"].values()), patience=60)


def _searched(passenger):
    return json.loads(passenger.types("search", "status", "--json").output)


def test_jobs_that_are_not_needed_are_taken_out_of_the_queue(grid_engine, passenger):
    run = passenger.run("--jobs", "5")

    passenger.types("wait", run)

    assert passenger.status(run)["state"] == "finished"
    passenger.until(lambda _: grid_engine.queued() == "", run)


def test_a_cancelled_run_leaves_the_queue_and_keeps_what_it_saved(grid_engine, passenger):
    run = passenger.run("--", "--pause", "0.1", "--steps", "400")
    passenger.until(lambda status: status["checkpoint"] is not None, run)

    passenger.types("cancel", run)

    told = passenger.until(lambda status: status["state"] == "cancelled", run)
    assert told["checkpoint"] is not None
    assert grid_engine.queued() == ""


def test_a_queue_that_does_not_exist_is_known_before_and_refused_in_its_own_words(passenger):
    passenger.add_settings('[cluster.lab]\nqueue = "nosuch"\n')

    foretold = passenger.types("doctor", "--on", "lab", code=1)
    refused = passenger.types("run", "--on", "lab", code=7)

    assert "no queue `nosuch`" in foretold.output
    assert "the queues are main.q" in foretold.output
    assert 'unknown queue "nosuch"' in refused.errors


def test_a_command_runs_on_a_node_with_data_in_place_and_gives_its_exit_code(passenger):
    ran = passenger.types(
        "shell", "--on", "lab", "--", "sh", "-c", "ls $RABASKA_DATA; hostname; exit 4", code=4
    )

    assert ran.output.split()[-4:] == ["0.txt", "1.txt", "2.txt", "control"]


def test_an_editor_is_told_why_there_is_no_way_into_a_job(passenger):
    """Its commands reach a running job by ssh to the node alone, and this one has no sshd."""
    passenger.write("train.py", "import time\ntime.sleep(60)\n")
    run = passenger.run("--jobs", "1")
    passenger.until(lambda now: now["state"] == "running", run)

    said = passenger.types("code", run, code=12)
    passenger.types("cancel", run)

    assert "because ssh: connect to host control" in said.errors
    assert "`rabaska shell`" in said.errors


def test_a_new_cluster_is_described_with_its_queues_and_planned_with(grid_engine, passenger):
    add = ("clusters", "add", "site", "--host", "lab", "--probe", "--ssh-option=-F")
    passenger.types(*add, f"--ssh-option={grid_engine.ssh_config}")
    profile = (passenger.home / "clusters" / "site.toml").read_text()

    planned = passenger.types("plan", "--on", "site", "--total", "30m", "--gpus", "2").output

    assert 'scheduler = "sge"' in profile
    assert '[partitions."main.q"]' in profile
    assert "gpus = 2" in profile
    assert "internet = false" in profile  # a job tried it
    assert "main.q" in planned


def test_a_job_that_is_cancelled_saves_before_it_is_deleted(grid_engine, passenger):
    passenger.write("train.py", SLOW_TO_SAVE)
    passenger.settings(command='"python3 train.py {output}"')
    run = passenger.run()
    passenger.until(lambda status: "ready" in status["tail"], run)

    passenger.types("cancel", run)

    told = passenger.until(lambda status: status["state"] == "cancelled", run)
    assert told["checkpoint"]["path"].endswith("checkpoint-0001.json")
    passenger.until(lambda _: grid_engine.queued() == "", run)


def test_the_place_in_the_line_is_that_of_grid_engine(grid_engine):
    """Both ask for 500 slots, and wait; nothing puts the second before the first."""
    never = ["qsub", "-terse", "-b", "y", "-w", "n", "-pe", "smp", "500", "true"]
    first, second = (grid_engine.run_as_user(never).stdout.strip() for _ in range(2))
    said = grid_engine.run_as_user(Sge().status_command([])).stdout
    grid_engine.run_as_user(["qdel", first, second], check=False)

    told = Sge().read_status(said)
    assert (told[first].place, told[second].place) == (1, 2)
