"""Rehearsals of small trainings, each with one planted fault, typed as a user would."""

import json

import pytest
from tests.voyages.planted_faults import EXACT, program_with

pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.torch]

NOT_SAFE = 13
THOROUGH = pytest.mark.thorough

SETTINGS = """
name = "points"
command = "python train.py --out {checkpoints} --resume {checkpoint}"

[resources]
walltime = "1h"

[environment]
variables = { OMP_NUM_THREADS = "1" }
"""


def rehearse(user, program, *words, code=0):
    (user.project / "train.py").write_text(program)
    user.write("rabaska.toml", SETTINGS)
    process = user.start("rehearse", *words)
    output, errors = process.communicate(timeout=280)
    assert process.returncode == code, output + errors
    return output


@pytest.mark.parametrize(
    ("fault", "cuts", "word", "faults", "code"),
    [
        pytest.param("no_optimizer_state", 1, "broken", ["optimizer"], NOT_SAFE, marks=THOROUGH),
        pytest.param("no_scheduler", 1, "broken", ["scheduler"], NOT_SAFE, marks=THOROUGH),
        pytest.param("reshuffled_data", 1, "broken", ["data order"], NOT_SAFE, marks=THOROUGH),
        pytest.param("no_random_state", 1, "broken", ["random state"], NOT_SAFE, marks=THOROUGH),
        ("unseeded_workers", 1, "close", ["not seeded"], 0),
        pytest.param(
            "only_weights",
            1,
            "broken",
            ["place lost", "optimizer", "scheduler"],
            NOT_SAFE,
            marks=THOROUGH,
        ),
        ("never_saves", 1, "broken", ["never saves"], NOT_SAFE),
        pytest.param("saved_in_place", 4, "broken", ["half-written"], NOT_SAFE, marks=THOROUGH),
    ],
)
def test_a_planted_fault_is_found_and_named(user, fault, cuts, word, faults, code):
    told = json.loads(rehearse(user, program_with(fault), "--json", "--cuts", str(cuts), code=code))

    verdict = told["verdict"]
    assert (verdict["word"], [each["name"] for each in verdict["faults"]]) == (word, faults)
    assert all(each["fix"] for each in verdict["faults"])


@pytest.mark.thorough  # the page about rehearsals shows one
def test_a_correct_training_is_exact_and_leaves_nothing_but_its_report(user):
    output = rehearse(user, EXACT, "--", "--epochs", "9")

    [report] = (user.project / "results").iterdir()
    told = json.loads((report / "rehearsal.json").read_text())
    cuts = [each["how"] for run in told["runs"] for each in run["stretches"] if each["how"]]
    assert "exact: every loss equals that of the uninterrupted run" in output
    assert "● both" in output
    assert sorted(set(cuts)) == ["ask", "kill", "kill while saving"]
    assert len(told["reference"]) == 45
    assert (report / "curves.svg").read_text().startswith("<svg")
    assert len(list(report.glob("*/job-001.log"))) == 3
    assert list((user.home / "rehearsals").iterdir()) == []
    assert "no runs yet" in user.types("status", code=9).errors


@pytest.mark.thorough
def test_a_training_that_takes_too_long_is_compared_as_far_as_it_came(user):
    words = ("--for", "0.2", "--cuts", "1", "--json", "--", "--steps", "1000000")
    process = user.start("rehearse", *words)
    told = json.loads(process.communicate(timeout=280)[0])

    [run] = told["runs"]
    assert told["verdict"]["word"] == "exact"
    assert [each["how"] for each in run["stretches"]][:1] == ["kill"]


def test_a_training_that_fails_by_itself_is_told_with_its_own_words(user):
    user.write("train.py", "raise SystemExit('no such model')")
    user.write("rabaska.toml", SETTINGS)

    said = user.types("rehearse", code=10).errors

    assert "the program fails in the rehearsal" in said
    assert "no such model" in said


def test_a_training_that_tells_no_losses_cannot_be_compared(user):
    user.write("train.py", "print('working')")
    user.write("rabaska.toml", SETTINGS)

    said = user.types("rehearse", code=10).errors

    assert "nothing to compare" in said
    assert "step 40 loss" in said
