"""A search on a real Slurm: its workers are elements of one array, and each trial is run once."""

import json

import pytest

pytestmark = [pytest.mark.real, pytest.mark.slow]

SEARCH = """
[search]
metric = "val_accuracy"
method = "grid"
at_once = 3
[search.space]
lr = [0.1, 0.01, 0.001]
seed = [1, 2]
"""
TRAIN = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--seed", type=int)
options = parser.parse_args()
print("epoch 1 val_accuracy", 0.9 - abs(options.lr - 0.01) - options.seed / 100, flush=True)
"""


def _status(voyager):
    return json.loads(voyager.types("search", "status", "--json").output)


def test_workers_of_one_array_run_every_trial_once(voyager):
    voyager.settings(command='"python3 train.py"', jobs="1")
    (voyager.project / "train.py").write_text(TRAIN)
    voyager.add_settings(SEARCH)

    name = voyager.types("search", "run", "--on", "lab", "--no-doctor").output.split()[-1]
    voyager.lab.wait_until(lambda: _status(voyager)["state"] == "finished", patience=120)

    found = _status(voyager)
    assert found["search"] == name
    assert [trial["state"] for trial in found["trials"]] == ["finished"] * 6
    assert found["best"]["values"] == {"lr": 0.01, "seed": 1}
    script = voyager.lab.path(f"{voyager.store}/searches/{name}/job.sh").read_text()
    assert "#SBATCH --array=1-3%3" in script
    submitted = list(voyager.lab.path(f"{voyager.store}/searches/{name}/submitted").iterdir())
    assert len(submitted) == 1
    log = voyager.types("logs", found["best"]["run"], "--on", "lab").output
    assert "epoch 1 val_accuracy 0.89" in log


def test_an_array_that_the_site_does_not_take_is_told_with_what_to_change(voyager):
    voyager.settings(command='"python3 train.py"', jobs="1")
    (voyager.project / "train.py").write_text(TRAIN)
    voyager.add_settings(
        SEARCH.replace("at_once = 3", "at_once = 2000").replace(
            "[1, 2]", "{int = [1, 999], points = 999}"
        )
    )

    said = voyager.types("search", "run", "--on", "lab", "--no-doctor", code=7).errors

    assert "sbatch said: sbatch: error: Batch job submission failed: Invalid job array" in said
    assert "lab takes smaller arrays only: try a smaller `at_once`" in said


MANY = 1000


@pytest.mark.thorough
def test_an_array_of_a_thousand_runs_every_trial_once(make_voyager, make_lab):
    """As many at once as the lab holds. Slurm is asked by jobs that begin or end, not by trials."""
    voyager = make_voyager(make_lab())
    voyager.settings(command='"python3 train.py"', jobs="1", walltime='"20m"')
    (voyager.project / "train.py").write_text(TRAIN)
    lines = f"""
[search]
metric = "val_accuracy"
method = "grid"
at_once = {MANY}
[search.space]
lr = [0.01]
seed = {{int = [1, {MANY}], points = {MANY}}}
"""
    voyager.add_settings(lines)

    started = json.loads(
        voyager.types("search", "run", "--on", "lab", "--no-doctor", "--json").output
    )
    results = voyager.lab.path(f"{started['path']}/trials")
    voyager.lab.wait_until(lambda: _ended(results) == MANY, patience=3000)

    found = _status(voyager)
    assert found["state"] == "finished"
    assert sorted(one["values"]["seed"] for one in found["trials"]) == list(range(1, MANY + 1))
    assert {one["jobs"] for one in found["trials"]} == {1}
    script = voyager.lab.path(f"{started['path']}/job.sh").read_text()
    assert f"#SBATCH --array=1-{MANY}%{MANY}" in script
    begun = sum(1 for _ in voyager.lab.path(f"{started['path']}/logs").iterdir())
    assert begun < MANY / 4
    assert _calls(voyager) < 40 + 6 * begun


def _ended(folder):
    """How many trials have a result, without a question to Slurm."""
    single = sum(1 for _ in folder.rglob("*.result.json"))
    gathered = [json.loads(path.read_text()) for path in folder.rglob("all.json")]
    return single + sum(len(one["trials"]) for one in gathered)


def _calls(voyager):
    """How often the user's programs asked the controller for anything."""
    said = voyager.lab.run_as_user(["sdiag"]).stdout
    by_user = said.partition("by user")[2]
    (line,) = [one for one in by_user.splitlines() if voyager.lab.user in one]
    return int(line.partition("count:")[2].split()[0])
