"""Trainings that were interrupted equal those that were not, to the last bit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.timeout(900)]

EXACT = Path(__file__).parent / "exact"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
GO_ON = 85


def train(folder: Path, *words: str, ranks: int = 1) -> int:
    ended = started("plain.py", folder, *words, ranks=ranks)
    sys.stderr.buffer.write(ended.stderr)  # shown where a test fails
    return ended.returncode


def started(
    program: str, folder: Path, *words: str, ranks: int
) -> subprocess.CompletedProcess[bytes]:
    launcher = []
    if ranks > 1 or program == "sharded.py":
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command = [sys.executable, *launcher, EXACT / program, folder, *words]
    return subprocess.run(command, env=ENVIRONMENT, check=False, stderr=subprocess.PIPE)


def left_by(folder: Path) -> tuple[str, str]:
    """The weights' digest, and every loss."""
    return (folder / "weights").read_text(), (folder / "metrics.jsonl").read_text()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert train(folder) == 0
    return left_by(folder)


@pytest.mark.parametrize("workers", ["0", "1", "2", "4"])
def test_any_number_of_workers_and_an_interruption_give_the_same(tmp_path, undisturbed, workers):
    assert train(tmp_path, "--workers", workers, "--stop-after", "33") == GO_ON

    assert train(tmp_path, "--workers", workers) == 0

    assert left_by(tmp_path) == undisturbed


# The sum of three numbers depends on their order.
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.thorough), 3])
def test_processes_that_train_together_go_on_exactly(tmp_path, ranks):
    assert train(tmp_path / "whole", ranks=ranks) == 0
    # Ranks compare notes once a second, so this one must take longer than that.
    cut = ("--stop-after", "20", "--pause", "0.006")
    assert train(tmp_path / "cut", *cut, ranks=ranks) != 0
    assert not (tmp_path / "cut" / "weights").exists()

    assert train(tmp_path / "cut", "--workers", "1", ranks=ranks) == 0

    assert left_by(tmp_path / "cut") == left_by(tmp_path / "whole")


@pytest.mark.thorough
def test_a_model_spread_over_processes_is_killed_and_goes_on_exactly(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert started("sharded.py", whole, ranks=2).returncode == 0
    for victim, step in (("first", "19"), ("last", "31")):
        killed = started("sharded.py", cut, "--die-after", step, "--die", victim, ranks=2)
        assert killed.returncode != 0
    newest = max(cut.glob("ckpt-*[0-9]"))
    with open(newest / "sharded" / "__1_0.distcp", "r+b") as part:  # of the other rank
        part.truncate(100)

    alone = started("sharded.py", cut, ranks=1)
    together = started("sharded.py", cut, ranks=2)

    assert b"began with WORLD_SIZE 2 and cannot continue with 1" in alone.stderr
    assert f"{newest.name} is damaged and set aside".encode() in alone.stderr
    assert together.returncode == 0
    assert left_by(cut) == left_by(whole)


@pytest.mark.thorough
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_model_spread_over_processes_is_trained_to_the_end_on_a_full_disk(tmp_path):
    whole, full = tmp_path / "whole", tmp_path / "full"
    assert started("sharded.py", whole, ranks=2).returncode == 0
    full.mkdir()
    # Room for one checkpoint and its folder, the losses, the weights and the disk's own root.
    files = 4 + len(list(max(whole.glob("ckpt-*[0-9]")).rglob("*")))
    mount = ["mount", "-t", "tmpfs", "-o", f"nr_inodes={files}", "tmpfs", full]
    subprocess.run(mount, check=True)
    try:
        (full / "weights").touch()
        trained = started("sharded.py", full, ranks=2)

        assert trained.returncode == 0
        assert b"could not be saved: No space left" in trained.stderr
        assert left_by(full) == left_by(whole)
    finally:
        subprocess.run(["umount", "--lazy", full], check=True)


def test_another_number_of_processes_is_refused(tmp_path, undisturbed):
    assert train(tmp_path, "--stop-after", "5") == GO_ON

    assert train(tmp_path, ranks=2) != 0
    assert train(tmp_path) == 0

    assert left_by(tmp_path) == undisturbed


def test_kills_and_damaged_checkpoints_and_full_disks_leave_no_trace():
    full = "1" if os.geteuid() == 0 and shutil.which("mount") else "0"
    command = [
        sys.executable, "-m", "tests.training.exact.campaign",
        "--kills", "12", "--damages", "4", "--full", full,
    ]  # fmt: skip

    done = subprocess.run(
        command,
        cwd=EXACT.parents[2],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].startswith("campaign: ")
    assert done.stdout.endswith(" 0 different\n")
