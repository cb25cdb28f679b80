"""`rabaska doctor` and `plan` as they ask a real Slurm at the other end of ssh."""

import json

import pytest
from tests.real.conftest import COMMAND

pytestmark = [pytest.mark.real, pytest.mark.slow]

UNSURE = 'probe = ["storage.tiers.project.path", "software.modules"]\n'
CLAIMS = '[storage.tiers]\nproject = "/project"\n[software]\nmodules = ["python/2.7"]\n'


def findings(user, *words, code=1):
    told = user.types("doctor", "--on", "lab", "--json", *words, code=code).output
    return {each["id"]: each for each in json.loads(told)["findings"]}


def test_doctor_shows_the_job_to_slurm_and_tells_what_it_would_refuse(voyager):
    assert findings(voyager, code=0) == {}

    voyager.settings(walltime='"3h"')
    too_long = findings(voyager)
    voyager.add_settings(
        '[cluster.lab]\nqueue = "nvidia_small"\n[cluster.lab.resources]\ngpus = 1\n'
    )
    too_long_for_its_queue = findings(voyager)
    voyager.settings()
    voyager.add_settings('[cluster.lab]\nfeatures = ["gold"]\n')
    no_feature = findings(voyager)
    voyager.settings(command='"python train.py {data}"')
    no_python = findings(voyager, code=0)
    voyager.types("run", "--on", "lab")
    voyager.types("wait", code=2)  # train.py knows no such words, but it began

    assert "its limit is 20 min" in too_long["cluster.time"]["why"]
    assert "60 min" in too_long_for_its_queue["cluster.time"]["why"]
    assert "Invalid feature specification" in no_feature["cluster.refused"]["why"]
    assert "python3" in no_python["environment.program"]["fix"]
    assert "there is no `python` here, so `python` runs" in voyager.types("logs").output
    assert voyager.lab.shell("squeue --me --noheader").strip() == ""


def test_a_site_that_is_not_asked_or_does_not_answer_is_said_to_be_known_by_its_profile(voyager):
    offline = voyager.types("doctor", "--on", "lab", "--offline")
    voyager.profile.write_text(voyager.profile.read_text().replace("-F", "-oBogus=1"))
    silent = voyager.types("doctor", "--on", "lab", code=1)

    assert "lab was not contacted; using its profile: the site was not asked" in offline.errors
    assert "lab was not contacted; using its profile" in silent.errors
    assert "error: " in silent.output


def test_what_nobody_had_verified_is_looked_at_once_and_remembered(voyager):
    text = voyager.profile.read_text()
    voyager.profile.write_text(UNSURE + text + CLAIMS)

    assert "not checked yet" in voyager.types("clusters", "show", "lab").output
    first = voyager.types("run", "--on", "lab", "--jobs", "1").errors
    second = voyager.types("run", "--on", "lab", "--jobs", "1").errors

    shown = voyager.types("clusters", "show", "lab").output
    assert "software.modules is python/2.7 in the profile of lab" in first
    assert "in the profile of lab" not in second
    assert "unverified: storage.tiers.project.path (differs: is not there)" in shown
    assert "unverified: software.modules (differs: python/3.11)" in shown


def test_the_first_run_finds_out_that_nodes_reach_no_internet(voyager):
    with (voyager.project / "train.py").open("a") as program:
        program.write("\nif 0:\n    MNIST('data', download=True)\n")
    before = findings(voyager, code=0)

    run = ("run", "--on", "lab", "--jobs", "1")
    voyager.types(*run, "--wait", "--", "--steps", "3", "--pause", "1")
    second = voyager.types(*run).errors

    after = findings(voyager, code=0)
    assert "code.download" not in before
    assert "it downloads its data" in second
    assert "the compute nodes of lab have no internet access" in after["code.download"]["why"]


@pytest.mark.thorough
def test_a_plan_knows_the_queues_of_today_guesses_the_start_and_measures_both_ends(voyager):
    voyager.settings(command=COMMAND.replace("--resume", "--steps 9000 --pause 0.1 --resume"))

    told = json.loads(voyager.types("plan", "--on", "lab", "--gpus", "1", "--json").output)
    measured = voyager.types("plan", "--on", "lab", "--gpus", "1", "--measure", "12s")

    (lab,) = told["plans"]
    assert lab["outlook"]["choice"]["gpu"] == "v100"
    assert {each["queue"] for each in lab["outlook"]["rejected"]} == set()
    assert "a guess of the scheduler" in lab["start"]
    assert "9,000 steps take" in measured.errors
    assert "measured  here: 0.1" in measured.output
    assert "measured  lab: 0.1" in measured.output
    assert "worth it? hardly" in measured.output
