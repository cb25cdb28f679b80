"""The same exactness through Lightning, the Trainer of Hugging Face, and Keras on PyTorch.

They have an environment of their own, which `make frameworks` builds before it runs these tests.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
EXACT = Path(__file__).parent / "exact"
PYTHON = REPOSITORY / ".venv-frameworks" / "bin" / "python"
GO_ON = 85

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not PYTHON.exists(), reason="run `make frameworks`"),
]


def train(program: str, folder: Path, *words: str) -> int:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY / "src")}
    command = [PYTHON, EXACT / program, folder, *words]
    return subprocess.run(command, env=environment, check=False, timeout=120).returncode


def left_by(folder: Path) -> tuple[str, str]:
    return (folder / "weights").read_text(), (folder / "metrics.jsonl").read_text()


@pytest.mark.parametrize("program", ["with_lightning.py", "with_huggingface.py", "with_keras.py"])
def test_any_number_of_workers_and_an_interruption_give_the_same(tmp_path, program):
    assert train(program, tmp_path / "undisturbed") == 0
    for workers, by, code in (("0", "USR1", GO_ON), ("3", "KILL", -9)):
        folder = tmp_path / workers
        cut = ("--workers", workers, "--stop-after", "33", "--by", by)
        assert train(program, folder, *cut) == code
        assert not (folder / "weights").exists()

        assert train(program, folder, "--workers", workers) == 0

        assert left_by(folder) == left_by(tmp_path / "undisturbed"), workers


@pytest.mark.parametrize("program", ["with_lightning.py", "with_huggingface.py", "with_keras.py"])
@pytest.mark.parametrize("told", [True, False], ids=["finished", "killed after its last step"])
def test_a_job_after_the_last_step_has_the_trained_weights(tmp_path, program, told):
    """It has still to evaluate and to export them."""
    assert train(program, tmp_path) == 0
    trained = left_by(tmp_path)
    (tmp_path / "weights").unlink()
    if not told:
        (tmp_path / "DONE.json").unlink()

    assert train(program, tmp_path) == 0

    assert left_by(tmp_path) == trained


@pytest.mark.parametrize("program", ["with_lightning.py", "with_huggingface.py", "with_keras.py"])
def test_a_training_that_had_ended_goes_on_with_more_epochs(tmp_path, program):
    assert train(program, tmp_path) == 0
    ended = left_by(tmp_path)[1].splitlines()

    assert train(program, tmp_path, "--epochs", "6") == 0

    more = left_by(tmp_path)[1].splitlines()
    assert (more[: len(ended)], len(more)) == (ended, len(ended) * 6 // 4)


@pytest.mark.parametrize("program", ["with_lightning.py", "with_huggingface.py"])
def test_steps_that_end_in_the_same_epoch_are_not_the_same(tmp_path, program):
    assert train(program, tmp_path, "--max-steps", "30") == 0
    ended = left_by(tmp_path)
    (tmp_path / "DONE.json").unlink()  # killed after its last step

    assert train(program, tmp_path, "--max-steps", "30") == 0
    assert left_by(tmp_path) == ended
    assert train(program, tmp_path, "--max-steps", "40") == 0

    steps = [json.loads(line)["step"] for line in left_by(tmp_path)[1].splitlines()]
    assert steps == list(range(1, 41))


def test_one_that_ended_early_stays_so(tmp_path, capfd):
    """Lightning, which had no last epoch, began empty ones for ever."""
    words = ("--max-steps", "90", "--end-after", "30")
    assert train("with_lightning.py", tmp_path, *words) == 0
    ended = left_by(tmp_path)
    capfd.readouterr()

    assert train("with_lightning.py", tmp_path, *words) == 0

    assert "this training had ended at step 30; nothing is left to do" in capfd.readouterr().err
    assert left_by(tmp_path) == ended


ORDERS = """
import sys
import torch, transformers
from rabaska.training import WrongUse
from rabaska.training.huggingface import train

class Own(transformers.Trainer):
    def _get_train_sampler(self, *_):
        return torch.utils.data.WeightedRandomSampler([1.0] * 8, 8)

def trainer(kind=transformers.Trainer, **more):
    args = transformers.TrainingArguments(sys.argv[1], report_to="none", use_cpu=True)
    vars(args).update(more)
    return kind(torch.nn.Linear(1, 1), args, train_dataset=[{"input": 1}] * 8)

with_loader = trainer()
with_loader.get_train_dataloader = lambda: []
grouped = {"train_sampling_strategy": "group_by_length"}, {"group_by_length": True}
for own in (trainer(Own), with_loader, *(trainer(**more) for more in grouped)):
    try:
        train(own, folder=sys.argv[1])
    except WrongUse as refused:
        print(refused.why)
"""


def test_a_trainer_with_an_order_of_its_own_is_refused(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    command = [PYTHON, "-c", ORDERS, tmp_path]

    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)

    for own, line in zip(
        ["_get_train_sampler()", "get_train_dataloader()", "group_by_length", "group_by_length"],
        done.stdout.splitlines(),
        strict=True,
    ):
        assert f" has {own}, and" in line
