"""A rehearsal in short jobs of a real Slurm."""

import json

import pytest

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_a_rehearsal_on_a_cluster_ends_with_a_verdict_and_leaves_nothing_there(voyager):
    words = ("--cuts", "2", "--json", "--", "--steps", "60", "--pause", "0.05")
    process = voyager.start("rehearse", "--on", "lab", *words)
    output, errors = process.communicate(timeout=280)

    assert process.returncode == 0, output + errors
    told = json.loads(output)
    cuts = [each["how"] for run in told["runs"] for each in run["stretches"] if each["how"]]
    assert (told["verdict"]["word"], told["cluster"]) == ("exact", "lab")
    assert cuts == ["kill", "kill"]
    assert voyager.ssh("lab", f"ls {voyager.store}/runs").stdout == ""
    assert voyager.ssh("lab", "squeue --noheader --me").stdout == ""
