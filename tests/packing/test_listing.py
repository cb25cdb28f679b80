"""Folders of files are looked into several at once: each one takes long on a shared file system."""

import os
import threading
from pathlib import Path

import pytest

from rabaska.packing import listing
from rabaska.packing.listing import Listing


def with_classes(folder: Path, count: int) -> Path:
    for number in range(count):
        (folder / f"{number:03d}").mkdir(parents=True)
        (folder / f"{number:03d}" / "file").touch()
    return folder


def listed(folder: Path) -> list[bytes]:
    return [name for some in Listing(os.fsencode(folder)) for name in some.one_by_one()]


def test_classes_are_looked_into_at_the_same_time(tmp_path, monkeypatch):
    look, together = listing.leaf, threading.Barrier(2, timeout=30)

    def met(path: bytes, prefix: bytes) -> object:
        if prefix not in (b"", b"000/"):  # the first one tells what the others are
            together.wait()  # for ever, if nobody else looked meanwhile
        return look(path, prefix)

    monkeypatch.setattr(listing, "leaf", met)
    assert listed(with_classes(tmp_path, 33)) == [b"%03d/file" % number for number in range(33)]


def test_a_deep_tree_does_not_take_more_threads(tmp_path, monkeypatch):
    look, before = listing.leaf, threading.active_count()
    most = []

    def counted(path: bytes, prefix: bytes) -> object:
        most.append(threading.active_count())
        return look(path, prefix)

    monkeypatch.setattr(listing, "leaf", counted)
    here, expected = tmp_path, []
    for depth in range(20):
        with_classes(here, 12)
        expected += [b"006/" * depth + b"%03d/file" % number for number in range(12)]
        here = here / "006"
    assert sorted(listed(tmp_path)) == sorted(expected)
    assert max(most) <= before + 8


def test_a_class_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    with_classes(tmp_path, 9)
    status = os.stat

    def refused(path: bytes) -> os.stat_result:
        if path.endswith(b"005"):
            raise PermissionError(13, "Permission denied")
        return status(path)

    monkeypatch.setattr(listing.os, "stat", refused)
    with pytest.raises(Exception, match=r"005 cannot be read"):
        listed(tmp_path)
