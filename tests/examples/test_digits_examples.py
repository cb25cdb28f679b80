"""The example projects do what their README says, with no rabaska in sight."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"
)

# One thread gives the same sums on every machine load, so runs can be compared bit by bit.
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "digits"
    make_data(folder)
    return folder


def make_data(folder, *options):
    command = [sys.executable, EXAMPLES / "digits" / "make_data.py", folder, *options]
    subprocess.run(command, check=True, capture_output=True)


def training(example, data, output, *options):
    command = [sys.executable, "train.py", "--data", data, "--output", output, *options]
    return subprocess.Popen(
        [str(word) for word in command],
        cwd=EXAMPLES / example, env=ONE_THREAD, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def train(example, data, output, *options):
    process = training(example, data, output, *options)
    printed, _ = process.communicate()
    assert process.returncode == 0, printed
    return printed


def kill_after_first_checkpoint(process, output, pattern):
    while not list(output.glob(pattern)):
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def results(output):
    return json.loads((output / "results.json").read_text())


def test_the_data_are_thousands_of_images_in_class_folders(digits):
    images = sorted(digits.glob("*/*/*.pgm"))

    assert len(images) == 4000
    assert {path.parent.name for path in images} == set("0123456789")
    assert {path.stat().st_size for path in images} == {len(b"P5\n28 28\n255\n") + 28 * 28}


def test_the_same_seed_draws_the_same_images(tmp_path):
    few = ("--train", "2", "--test", "1")
    make_data(tmp_path / "a", *few)
    make_data(tmp_path / "b", *few)
    make_data(tmp_path / "c", *few, "--seed", "1")

    a, b, c = ((tmp_path / name / "train/7/00001.pgm").read_bytes() for name in "abc")

    assert a == b != c


def test_a_few_epochs_of_digits_print_progress_and_leave_checkpoints(digits, tmp_path):
    printed = train("digits", digits, tmp_path, "--epochs", "2")

    assert "epoch 1 step 20 loss " in printed
    assert sorted(path.name for path in tmp_path.glob("*.npz")) == [
        "checkpoint-000050.npz", "checkpoint-000100.npz",
    ]  # fmt: skip
    assert results(tmp_path)["steps"] == 100


@pytest.mark.thorough  # the demo and its page carry it to the same end
@pytest.mark.slow
def test_digits_alone_trains_to_more_than_nine_in_ten(digits, tmp_path):
    train("digits", digits, tmp_path)

    assert results(tmp_path)["accuracy"] > 0.9


@pytest.mark.slow
def test_digits_killed_and_resumed_ends_with_the_very_same_weights(digits, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train("digits", digits, whole, "--epochs", "16")
    process = training("digits", digits, broken, "--epochs", "16")
    kill_after_first_checkpoint(process, broken, "checkpoint-000100.npz")

    # The one before the newest: the newest may have been cut by the kill.
    printed = train("digits", digits, broken, "--epochs", "16",
                    "--resume", broken / "checkpoint-000050.npz")  # fmt: skip

    assert "at step 50" in printed
    assert results(broken)["accuracy"] > 0.9
    last = "checkpoint-000800.npz"
    with np.load(whole / last) as expected, np.load(broken / last) as found:
        assert all(np.array_equal(expected[name], found[name]) for name in expected.files)


@pytest.mark.torch
@pytest.mark.slow
@needs_torch
def test_the_torch_twin_killed_and_resumed_trains_to_more_than_nine_in_ten(digits, tmp_path):
    process = training("digits-torch", digits, tmp_path, "--epochs", "8")
    kill_after_first_checkpoint(process, tmp_path, "checkpoint-001.pt")

    printed = train("digits-torch", digits, tmp_path, "--epochs", "8",
                    "--resume", tmp_path / "checkpoint-000.pt")  # fmt: skip

    assert "at epoch 2" in printed
    assert results(tmp_path)["accuracy"] > 0.9
