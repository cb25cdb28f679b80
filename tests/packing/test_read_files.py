"""What is read next is fetched meanwhile: by the system where opening is quick, else by threads."""

import ctypes
import os
import time
from collections.abc import Iterator
from itertools import chain, islice, repeat
from mmap import ACCESS_COPY, mmap

import pytest

from rabaska.errors import DatasetError
from rabaska.packing import read_files
from rabaska.packing.read_files import Reader
from rabaska.packing.tar_batches import Portion

FILES = 2000


@pytest.fixture
def names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = [b"%04d.txt" % number for number in range(FILES)]
    for name in made:
        (tmp_path / os.fsdecode(name)).write_bytes(name)
    return made


def with_clock(monkeypatch, answers: Iterator[bool]) -> None:
    """Whether each step made us wait, as told here: no disk of a test is slow when it should be."""

    class Clock:
        def waited(self, _count: int) -> bool:
            return next(answers)

    monkeypatch.setattr(read_files, "Clock", Clock)


def portions(names: list[bytes]) -> Iterator[Portion]:
    return Reader(os.getcwdb(), follow_links=False).portions(names)


def contents(tars: list[Portion]) -> list[bytes]:
    return [bytes(one.tar[512:520]) for tar in tars for one in tar.one_by_one()]


def is_cached(name: bytes) -> bool:
    """Whether the file is in memory; any way of reading it would bring it there."""
    with open(name, "rb") as stream, mmap(stream.fileno(), 0, access=ACCESS_COPY) as mapped:
        page = (ctypes.c_char * len(mapped)).from_buffer(mapped)
        found = ctypes.c_ubyte()
        ctypes.CDLL(None).mincore(page, ctypes.c_size_t(len(mapped)), ctypes.byref(found))
        del page
        return bool(found.value & 1)


def forget(names: list[bytes]) -> None:
    os.sync()  # what is not written yet stays in memory
    for name in names:
        descriptor = os.open(name, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    if is_cached(names[-1]):
        pytest.skip("this folder lies in memory")


def test_the_system_fetches_the_next_files_of_a_cold_disk(names, monkeypatch):
    forget(names)
    with_clock(monkeypatch, chain([True], repeat(False)))
    found = portions(names)
    done = sum(len(portion.names) for portion in islice(found, 3))
    coming = names[done : done + 128]
    deadline = time.monotonic() + 30
    while not all(map(is_cached, coming)):
        assert time.monotonic() < deadline, "nobody fetched them"
        time.sleep(0.01)
    assert not is_cached(names[-1])  # not all of a large dataset at once


@pytest.mark.parametrize(
    "answers",
    [repeat(False), chain([True], repeat(False)), chain([True, False] * 2, repeat(True))],
    ids=["warm", "cold disk", "slow to open"],
)
def test_every_file_comes_once_and_in_order(names, monkeypatch, answers):
    with_clock(monkeypatch, answers)
    assert contents(list(portions(names))) == names


def test_without_a_way_to_tell_the_system_threads_read(names, monkeypatch):
    with_clock(monkeypatch, repeat(True))
    monkeypatch.setattr(read_files, "_CAN_ANNOUNCE", False)
    assert contents(list(portions(names))) == names


def test_a_file_that_vanished_before_it_was_announced_is_named(names, monkeypatch):
    with_clock(monkeypatch, chain([True], repeat(False)))
    os.unlink(names[-1])
    with pytest.raises(DatasetError, match=r"1999\.txt vanished"):
        list(portions(names))
