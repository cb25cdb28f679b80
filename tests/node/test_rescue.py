"""Checkpoints beside the code, while the program still runs."""

import os
from pathlib import Path

import pytest

from rabaska.node.link import keep
from rabaska.node.link.rescue import Rescue


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "carried/output").mkdir(parents=True)
    return tmp_path / "code"


def rescue_for(code: Path) -> Rescue:
    return Rescue(str(code), str(code.parent / "carried"), ["*.txt"], {})


def kept(code: Path) -> list[str]:
    return sorted(os.listdir(code.parent / "carried/output"))


def test_the_newest_checkpoint_is_copied_once(code: Path) -> None:
    (code / "step-1.txt").write_text("1")
    (code / "notes").write_text("no checkpoint")
    rescue = rescue_for(code)

    paths = [rescue.sweep(), rescue.sweep()]

    assert paths == ["step-1.txt", None]
    assert kept(code) == ["step-1.txt"]
    assert keep.beside(str(code.parent / "carried")) == ["step-1.txt"]


def test_copies_follow_a_program_that_deletes_old_checkpoints(code: Path) -> None:
    rescue = rescue_for(code)
    (code / "step-1.txt").write_text("1")
    rescue.sweep()
    (code / "step-1.txt").unlink()
    (code / "step-2.txt").write_text("2")

    rescue.sweep()

    assert kept(code) == ["step-2.txt"]


def test_a_checkpoint_that_is_a_link_to_the_output_is_left_alone(code: Path) -> None:
    there = code.parent / "carried/output/last.txt"
    there.write_text("1")
    (code / "last.txt").symlink_to(there)

    assert rescue_for(code).sweep() is None


def test_an_empty_file_is_no_checkpoint_yet(code: Path) -> None:
    (code / "last.txt").touch()

    assert rescue_for(code).sweep() is None
    assert kept(code) == []


def test_a_file_that_changes_while_it_is_copied_replaces_nothing(code: Path) -> None:
    (code / "last.txt").write_text("new")
    target = code.parent / "carried/output/last.txt"
    target.write_text("old")

    with pytest.raises(keep.Changed):
        keep.copy_whole(str(code / "last.txt"), str(target), still=lambda: False)

    assert target.read_text() == "old"
    assert kept(code) == ["last.txt"]
