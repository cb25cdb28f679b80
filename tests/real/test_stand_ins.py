"""Whole journeys over a real ssh: on stand-ins, and on Slurm's own qsub, qstat and qdel."""

import json

import pytest
from tests.stand_ins.install import PROGRAMS, install

pytestmark = [pytest.mark.real, pytest.mark.slow]

FOLDER = "/usr/local/lib/stand-in"


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


@pytest.mark.parametrize("scheduler", PROGRAMS)
def test_a_chain_of_three_with_one_link_killed_is_finished_and_fetched(make_passenger, scheduler):
    passenger = make_passenger(scheduler)
    words = ["--pause", "0.1", "--steps", "150", "--every", "1"]
    run = passenger.run("--walltime", "12s", "--links", "4", "--", *words)
    told = passenger.until(lambda status: status["checkpoint"] is not None, run)

    passenger.lab.world.run(["kill", "-KILL", str(told["links"][0]["pid"])])
    passenger.types("wait", run)

    told = passenger.status(run)
    assert told["state"] == "finished"
    assert len(told["links"]) >= 3
    assert told["links"][1]["how"] == "time limit"
    folder = passenger.types("fetch", run).output.strip()
    with open(f"{folder}/output/result.json") as result:
        assert json.load(result) == {"final": 150}
