"""Folders of files are looked into several at once: each one takes long on a shared file system."""

import errno
import os
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.errors import DatasetError
from rabaska.packing import listing
from rabaska.packing.listing import Listing, NotPlain, unreadable
from rabaska.packing.listing_file import write_draft


def with_classes(folder: Path, count: int) -> Path:
    for number in range(count):
        (folder / f"{number:03d}").mkdir(parents=True)
        (folder / f"{number:03d}" / "file").touch()
    return folder


def listed(folder: Path) -> list[bytes]:
    return [name for some in Listing(os.fsencode(folder)) for name in some.one_by_one()]


def test_classes_are_looked_into_at_the_same_time(tmp_path, monkeypatch):
    look, busy, most = listing.leaf, Counter(), Counter()

    def watched(path: bytes, prefix: bytes) -> object:
        split = prefix.partition(b"/")[0]
        busy[split] += 1
        most[split] = max(most[split], busy[split])
        time.sleep(0.01)  # as long as storage may take
        busy[split] -= 1
        return look(path, prefix)

    monkeypatch.setattr(listing, "leaf", watched)
    expected = []
    for split in ("test", "train"):
        with_classes(tmp_path / split, 33)
        expected += [b"%s/%03d/file" % (split.encode(), number) for number in range(33)]
    assert listed(tmp_path) == expected
    assert min(most[b"test"], most[b"train"]) > 1


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
    with pytest.raises(DatasetError, match=r"005 cannot be read"):
        listed(tmp_path)


@pytest.mark.parametrize(("number", "hint"), [
    (errno.EACCES, "chmod u+r"), (errno.EPERM, "chmod u+r"), (errno.ENOENT, "command again"),
    (errno.ENOTDIR, "run the command again"), (errno.EISDIR, "run the command again"),
    (errno.ESTALE, "run the command again"), (errno.EIO, "another disk"),
    (errno.ELOOP, "remove the link"), (errno.ENAMETOOLONG, "shorten its names"),
    (errno.EMFILE, "ulimit -n"), (errno.ETIMEDOUT, "later"), (errno.ENODEV, "its disk"),
])  # fmt: skip
def test_each_way_in_which_reading_fails_has_its_own_hint(number, hint):
    said = unreadable("/data/it", OSError(number, os.strerror(number)))

    assert hint in said.hint
    assert ("chmod" in said.hint) == (number in (errno.EACCES, errno.EPERM))
    assert "/data/it" in said.what
    assert said.why


def test_a_tree_deeper_than_a_path_may_be_long_is_said_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(25):  # each step is short enough, all of them are not
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    os.chdir(tmp_path)

    with pytest.raises(DatasetError, match="too long for this system") as caught:
        list(Listing(os.fsencode(tmp_path)))

    assert "chmod" not in caught.value.hint
    subprocess.run(["rm", "-r", tmp_path / ("d" * 200)], check=True)


paths = st.lists(
    st.lists(st.sampled_from(["a", "b", "a.b", "a-b", "a b", "ab", "é", "z" * 90]), max_size=4),
    max_size=25,
)


@given(folders=paths, files=paths)
def test_c_walks_a_tree_as_python_does(compiled, folders, files):
    with tempfile.TemporaryDirectory() as top:
        for parts in folders:
            Path(top, *parts).mkdir(parents=True, exist_ok=True)
        for number, parts in enumerate(files):
            if (place := Path(top, *parts)).is_dir():
                (place / f"{number % 7}.x").touch()
        listings = [Listing(os.fsencode(top)) for _ in range(2)]

        walked, looked_at = list(listings[0].walked()), list(listings[1])

    columns = [
        [row for some in found for row in zip(some.one_by_one(), some.hashes, strict=True)]
        for found in (walked, looked_at)
    ]
    assert columns[0] == columns[1]
    assert sorted(listings[0].folders) == sorted(listings[1].folders)


def test_what_is_no_file_and_no_folder_is_looked_at_one_by_one(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "link").symlink_to("nowhere")
    listing_ = Listing(os.fsencode(tmp_path))

    with pytest.raises(NotPlain):
        list(listing_.walked())

    assert listing_.folders == []
    assert write_draft(listing_, str(tmp_path)).links[0].name == b"a/b/link"
