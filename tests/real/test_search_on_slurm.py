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
