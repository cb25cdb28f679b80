"""What Slurm refuses, and what it will never start, told in plain words with the way out."""

import json

import pytest

pytestmark = [pytest.mark.real, pytest.mark.slow]

SETTINGS = """
name = "tiny"
command = "python3 -c pass"

[resources]
walltime = "2m"
"""


@pytest.fixture
def voyager(voyager):
    """A program without data: nothing here gets as far as reading any."""
    voyager.write("rabaska.toml", SETTINGS)
    return voyager


@pytest.mark.parametrize(
    ("words", "settings", "said", "told"),
    [
        (["--walltime", "3h"], "", "time limit is invalid", "longer than nvidia_dev allows"),
        (["--gpus", "9"], "", "node configuration is not available", "more than nvidia_dev has"),
        ([], 'queue = "nowhere"', "nvalid partition", "lab has no queue `nowhere`"),
        ([], 'native = ["--nodes=4"]', "ode count", "nodes"),
        ([], 'features = ["gold"]', "nvalid feature", "feature"),
    ],
)
def test_a_refusal_quotes_slurm_says_what_it_means_and_what_to_do(
    voyager, words, settings, said, told
):
    voyager.add_settings(f"[cluster.lab]\n{settings}\n")

    refused = voyager.types("run", "--on", "lab", *words, code=7)

    assert said in refused.errors
    assert told in refused.errors.partition("because")[0]
    assert "hint:" in refused.errors
    assert "no runs yet" in voyager.types("status", code=9).errors


def test_a_refused_run_leaves_nothing_behind_here_or_there(voyager):
    refused = voyager.types("run", "--on", "lab", "--walltime", "3h", "--no-doctor", code=7)

    assert "time limit is invalid" in refused.errors
    assert "walltime" in refused.errors.partition("hint:")[2]
    assert "no runs yet" in voyager.types("status", code=9).errors
    assert "you have no runs on lab" in voyager.types("status", "--on", "lab").errors


def test_a_run_refused_for_a_passing_reason_is_submitted_by_the_same_command(lab, voyager):
    partition = ["scontrol", "update", "partitionname=nvidia_dev"]
    lab.world.run([*partition, "state=inactive"])
    try:
        refused = voyager.types("run", "--on", "lab", code=7)
    finally:
        lab.world.run([*partition, "state=up"])
    voyager.types("run", "--on", "lab")

    assert "Required partition not available" in refused.errors
    assert json.loads(voyager.types("wait", "--json").output)["state"] == "finished"


def test_a_job_whose_nodes_are_all_drained_is_taken_and_waits(lab, voyager):
    nodes = ["scontrol", "update", "nodename=sdumont3170,sdumont3171"]
    lab.world.run([*nodes, "state=drain", "reason=maintenance"])
    try:
        voyager.run()
        told = voyager.status()
    finally:
        lab.world.run([*nodes, "state=resume"])

    assert told["state"] == "queued"
    assert json.loads(voyager.types("wait", "--json").output)["state"] == "finished"


def test_a_job_that_is_held_says_that_it_will_never_start_and_why(lab, voyager):
    voyager.add_settings('[cluster.lab]\nnative = ["--hold"]\n')
    voyager.run()

    told = voyager.status()

    assert told["state"] == "queued"
    assert "never start (JobHeldUser)" in told["reason"]
    assert "scontrol release" in voyager.types("status").output


def test_a_job_whose_dependency_failed_says_that_it_will_never_start(lab, voyager):
    failed = lab.sbatch("#!/bin/bash\nexit 3")
    lab.wait_for_state(failed, "FAILED")
    voyager.add_settings(f'[cluster.lab]\nnative = ["--dependency=afterok:{failed}"]\n')
    voyager.run()

    told = voyager.until(lambda status: "Dependency" in status["reason"])

    assert "never start (DependencyNeverSatisfied)" in told["reason"]
