"""Whole journeys over a real ssh: on stand-ins, and on Slurm's own qsub, qstat and qdel."""

import json

import pytest
from tests.lab.fixtures import skip_or_fail
from tests.lab.install import unavailable
from tests.lab.torque_commands import give_torque_commands
from tests.needs.packages import LAB, SCREEN, TORQUE_COMMANDS
from tests.real.test_shell import Terminal
from tests.stand_ins.install import PROGRAMS, install

pytestmark = [pytest.mark.real, pytest.mark.slow]

FOLDER = "/usr/local/lib/stand-in"
LIMIT = ("--walltime", "24s", "--jobs", "4")
CHAIN = (*LIMIT, "--", "--every", "1", "--hold", "2")


@pytest.fixture
def make_passenger(make_lab, make_voyager):
    """Makes the user of a lab whose login node has the commands of another scheduler."""

    def make(scheduler):
        lab = make_lab()
        spool = f"{lab.shared}/spool"

        def write(path, text):
            lab.world.write(path, text, mode=0o755)

        install(scheduler, FOLDER, spool, "/usr/bin/python3", write)
        profile = lab.path("/etc/profile.d/site.sh")
        profile.write_text(f"{profile.read_text()}export PATH={FOLDER}:$PATH\n")
        someone = make_voyager(lab)
        someone.profile.write_text(someone.profile.read_text().replace("slurm", scheduler))
        return someone

    return make


@pytest.fixture
def passenger_of_slurm(make_lab, make_voyager):
    """The user of a lab who knows Slurm by the commands of Torque only."""
    skip_or_fail(unavailable(LAB | TORQUE_COMMANDS))
    lab = make_lab()
    give_torque_commands(lab)
    someone = make_voyager(lab)
    someone.profile.write_text(someone.profile.read_text().replace("slurm", "torque"))
    return someone


@pytest.mark.parametrize("scheduler", PROGRAMS)
def test_a_chain_of_three_with_one_job_killed_is_finished_and_fetched(make_passenger, scheduler):
    passenger = make_passenger(scheduler)
    run = passenger.run(*CHAIN)
    told = passenger.until(lambda status: status["checkpoint"] is not None, run)

    passenger.lab.world.run(["kill", "-KILL", str(told["jobs"][0]["pid"])])
    passenger.types("wait", run)

    assert_finished_by_a_chain(passenger, run)


def test_sqsub_gives_a_shell_on_a_node_by_way_of_a_screen(make_passenger):
    """Its one node is the login node, so ssh need not go far."""
    skip_or_fail(unavailable(LAB | SCREEN))
    passenger = make_passenger("sqsub")
    world = passenger.lab.world
    world.write(f"{FOLDER}/ssh", '#!/bin/sh\nexec sh -c "$3"\n', mode=0o755)
    world.run(["install", "-d", "-m", "1777", "/run/screen"])

    there = Terminal(passenger, "shell", "--on", "lab")
    there.sees(r"job 222166 runs on wha309")
    there.sees(r"to train, type:")
    there.types("echo data: $(ls $RABASKA_DATA | wc -l), $TERM")
    there.sees(r"data: [1-9]\d*, screen")
    there.types("exit")

    assert there.leaves() == 0
    assert "222166 gpu       D" in passenger.lab.shell("sqjobs || true")


def test_slurm_is_reached_by_its_own_commands_of_torques_names(passenger_of_slurm):
    passenger, lab = passenger_of_slurm, passenger_of_slurm.lab
    run = passenger.run(*CHAIN)
    first = passenger.until(lambda status: status["checkpoint"] is not None, run)["jobs"][0]

    lab.nodes.run(first["host"], ["kill", "-KILL", str(first["pid"])])
    passenger.types("wait", run)

    assert_finished_by_a_chain(passenger, run)


def assert_finished_by_a_chain(passenger, run):
    told = passenger.status(run)
    assert told["state"] == "finished"
    assert len(told["jobs"]) >= 3
    assert told["jobs"][1]["how"] == "time limit"
    folder = passenger.types("fetch", run).output.strip()
    with open(f"{folder}/output/result.json") as result:
        assert json.load(result) == {"final": 30}
