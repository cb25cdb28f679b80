"""The same exactness through Lightning, the Trainer of Hugging Face, and Keras on PyTorch.

They have an environment of their own, which `make frameworks` builds before it runs these tests.
"""

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
    return subprocess.run(command, env=environment, check=False).returncode


def left_by(folder: Path) -> tuple[str, str]:
    return (folder / "weights").read_text(), (folder / "metrics.jsonl").read_text()


@pytest.mark.parametrize("program", ["with_lightning.py", "with_huggingface.py", "with_keras.py"])
def test_any_number_of_workers_and_an_interruption_give_the_same(tmp_path, program):
    assert train(program, tmp_path / "undisturbed") == 0
    for workers, by, code in (
        ("0", "KILL", -9), ("1", "USR1", GO_ON), ("2", "KILL", -9), ("4", "KILL", -9),
    ):  # fmt: skip
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
