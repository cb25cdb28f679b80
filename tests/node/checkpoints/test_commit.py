"""Checkpoints that are folders: whole, or set aside, or never there."""

import json
import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rabaska.node import partial_folder
from rabaska.node.checkpoints import commit, newest_checkpoint, order, validity


def save(parent: Path, step: int, *, content: bytes = b"weights" * 5000) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    making = partial_folder.begin(str(parent), commit.folder_name(step))
    (Path(making.path) / "inside").mkdir()
    parts = []
    for name in ("tensors.safetensors", "inside/more.bin"):
        (Path(making.path) / name).write_bytes(content)
        parts.append(commit.proven(making.path, name))
    commit.seal(making.path, step, parts, {"epoch": 1})
    target = parent / commit.folder_name(step)
    assert partial_folder.finish(making, str(target))
    return target


@pytest.mark.parametrize("deep", [False, True])
def test_a_sealed_folder_is_whole(tmp_path: Path, deep: bool) -> None:
    assert commit.check(str(save(tmp_path, 12)), deep=deep) is None


DAMAGES = {
    "cut short": lambda folder: os.truncate(folder / "inside/more.bin", 100),
    "emptied": lambda folder: os.truncate(folder / "tensors.safetensors", 0),
    "a file missing": lambda folder: (folder / "inside/more.bin").unlink(),
    "no manifest": lambda folder: (folder / commit.COMMIT).unlink(),
    "half a manifest": lambda folder: os.truncate(folder / commit.COMMIT, 50),
    "an empty manifest": lambda folder: (folder / commit.COMMIT).write_text("{}"),
    "a manifest of nonsense": lambda folder: (folder / commit.COMMIT).write_text(
        json.dumps({"format": 1, "step": 12, "piece": None, "files": [{"name": 3}]})
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_seen_without_reading_the_content(tmp_path: Path, damage: str) -> None:
    folder = save(tmp_path, 12)
    DAMAGES[damage](folder)

    assert commit.check(str(folder)) is not None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.integers(0, 34_999), bit=st.integers(0, 7))
def test_one_changed_bit_is_found_by_the_deep_check(tmp_path: Path, place: int, bit: int) -> None:
    folder = tmp_path / commit.folder_name(12)
    folder = folder if folder.exists() else save(tmp_path, 12)
    victim = folder / "tensors.safetensors"
    whole = victim.read_bytes()
    changed = bytearray(whole)
    changed[place] ^= 1 << bit
    victim.write_bytes(changed)

    assert commit.check(str(folder)) is None
    assert "changed" in (commit.check(str(folder), deep=True) or "")
    victim.write_bytes(whole)


def test_a_renamed_folder_does_not_pass_for_another_step(tmp_path: Path) -> None:
    folder = save(tmp_path, 12)
    folder.rename(tmp_path / commit.folder_name(99))

    assert commit.check(str(tmp_path / commit.folder_name(99))) is not None


def test_the_agent_finds_the_newest_folder_and_passes_its_files_over(tmp_path: Path) -> None:
    save(tmp_path / "checkpoints", 9)
    newest = save(tmp_path / "checkpoints", 10)
    moment = (newest / commit.COMMIT).stat().st_mtime_ns

    found = newest_checkpoint.newest_valid(str(tmp_path), ["*.pt"])

    assert found == order.Candidate("checkpoints/ckpt-000000010", 70_000, moment)
    assert list(newest_checkpoint.candidates(str(tmp_path), [])) == []


def test_a_damaged_folder_is_set_aside_once_and_the_one_before_it_used(tmp_path: Path) -> None:
    save(tmp_path, 9)
    newest = save(tmp_path, 10)
    (newest / "inside/more.bin").write_bytes(b"x" * 35_000)
    told: list[str] = []

    for _ in range(2):
        found = newest_checkpoint.newest_valid(
            str(tmp_path), [], report=lambda path, _: told.append(path)
        )

    assert found is not None
    assert found.path == "ckpt-000000009"
    assert told == ["ckpt-000000010"]
    assert (tmp_path / "ckpt-000000010.damaged").is_dir()


def test_what_is_still_being_written_is_no_candidate(tmp_path: Path) -> None:
    making = partial_folder.begin(str(tmp_path), commit.folder_name(12))
    (Path(making.path) / "tensors.safetensors").write_bytes(b"half")

    assert newest_checkpoint.newest_valid(str(tmp_path), []) is None
    assert Path(making.path).exists()
    partial_folder.abandon(making)


def test_somebody_elses_folder_of_that_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ckpt-000000012").mkdir()
    (tmp_path / "ckpt-000000012" / "notes").write_text("mine")

    assert newest_checkpoint.newest_valid(str(tmp_path), []) is None
    assert (tmp_path / "ckpt-000000012" / "notes").exists()


def test_pruning_counts_only_whole_checkpoints(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        save(tmp_path, step)
    (tmp_path / "ckpt-000000004" / commit.COMMIT).unlink()

    commit.prune(str(tmp_path), keep=2)

    assert [made.step for made in commit.newest_first(str(tmp_path))] == [4, 3, 2]


def test_newest_first_goes_by_number_beyond_nine_digits(tmp_path: Path) -> None:
    for step in (999_999_999, 1_000_000_000, 5):
        (tmp_path / commit.folder_name(step)).mkdir()

    steps = [made.step for made in commit.newest_first(str(tmp_path))]

    assert steps == [1_000_000_000, 999_999_999, 5]


def test_validity_knows_folders(tmp_path: Path) -> None:
    folder = save(tmp_path, 3, content=random.Random(0).randbytes(50_000))

    assert validity.check(str(folder), deep=True) is None
