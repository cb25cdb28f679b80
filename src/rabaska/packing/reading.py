"""Files read one after the other where that is fast, and many at once where each one takes long.

A cold disk and a shared file system answer slowly but answer many; a warm cache is quickest
without threads, which only take turns.
"""

import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, TypeVar

from rabaska.errors import DatasetError
from rabaska.packing.listing import unreadable

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

LARGE = 2**20  # files from this size on are read in pieces, by whoever packs them

T = TypeVar("T")
S = TypeVar("S")
Contents = list[tuple[os.stat_result, bytes]]

_FIRST, _FEW, _MANY = 64, 512, 16384  # files read before looking at the clock again
_MOST_BYTES = 48 * 2**20  # held at once while many are read
_THREADS = 32
_CHUNK = 8
_SLOW, _QUICK = 100e-6, 30e-6  # seconds for a file
# A file may have become a link, or a pipe that would block, since it was listed.
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class Reader:
    """Reads files below the folder that this process stands in."""

    def __init__(self, source: bytes, *, follow_links: bool) -> None:
        self._source = source
        self._flags = _OPEN if follow_links else _OPEN | os.O_NOFOLLOW
        self._slow = False
        self._count = _FIRST
        self._mean = 0.0  # bytes in a file
        self._pool: ThreadPoolExecutor | None = None

    def groups(self, names: list[bytes]) -> Iterator[tuple[list[bytes], Contents]]:
        """Names and what they hold, some at a time; nothing but b"" for a large file."""
        done = 0
        while done < len(names):
            group = names[done : done + self._count]
            done += len(group)
            clock, waits = time.perf_counter(), _waits()
            contents = self._all_at_once(group) if self._slow else self._read_some(group)
            spent = time.perf_counter() - clock
            self._adapt(spent / len(group), (_waits() - waits) / len(group), contents)
            yield group, contents

    def open(self, name: bytes) -> int:
        try:
            return os.open(name, self._flags)
        except OSError as problem:
            raise self._unreadable(name, problem) from problem

    def piece(self, name: bytes, descriptor: int, size: int) -> bytes:
        try:
            return os.read(descriptor, size)
        except OSError as problem:
            raise self._unreadable(name, problem) from problem

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown()

    def _read_some(self, names: list[bytes]) -> Contents:
        try:
            return list(map(self._read, names))
        except OSError:
            # Who it was is found out afterwards: to be ready for it would slow all others down.
            return [self.read(name) for name in names]

    def _read(self, name: bytes) -> tuple[os.stat_result, bytes]:
        descriptor = os.open(name, self._flags)
        status = os.fstat(descriptor)
        size = status.st_size
        # One byte more than it has, so that a file that grew shows itself.
        content = os.read(descriptor, size + 1) if size < LARGE else b""
        os.close(descriptor)
        return status, content

    def read(self, name: bytes) -> tuple[os.stat_result, bytes]:
        try:
            return self._read(name)
        except OSError as problem:
            raise self._unreadable(name, problem) from problem

    def _all_at_once(self, names: list[bytes]) -> Contents:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # takes long to import

            self._pool = ThreadPoolExecutor(_THREADS)
        chunks = list(spread(names))
        read = self._pool.map(self._read_some, chunks)
        found = {
            name: content
            for chunk, contents in zip(chunks, read, strict=True)
            for name, content in zip(chunk, contents, strict=True)
        }
        return [found[name] for name in names]

    def _adapt(self, spent: float, waits: float, contents: Contents) -> None:
        self._mean = sum(len(content) for _, content in contents) / len(contents) + 1
        if self._slow:
            self._slow = spent > _QUICK
        else:
            # A busy processor makes us slow as well, but not wait: threads would not help.
            self._slow = spent > _SLOW and waits > 0.5
        room = int(_MOST_BYTES / self._mean) + 1
        self._count = min(_MANY, room) if self._slow else _FEW

    def _unreadable(self, name: bytes, problem: OSError) -> DatasetError:
        return unreadable(os.fsdecode(os.path.join(self._source, name)), problem)


def _waits() -> int:
    """How often this thread gave the processor away because it waited for something."""
    # Only Linux counts for each thread; elsewhere the whole process stands for its one thread.
    who = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
    return resource.getrusage(who).ru_nvcsw


def spread(names: Iterable[bytes]) -> Iterator[list[bytes]]:
    """A few neighbours at a time, from each folder in turn.

    File systems look names up one by one within a folder, but in several folders at once.
    """
    folders = [list(group) for _, group in groupby(names, lambda name: name.rpartition(b"/")[0])]
    chunks = [
        [folder[place : place + _CHUNK] for place in range(0, len(folder), _CHUNK)]
        for folder in folders
    ]
    for turn in zip_longest(*chunks):
        yield from (chunk for chunk in turn if chunk)


def at_once(ask: Callable[[T], S], about: Sequence[T]) -> list[S]:
    """`ask` of each, with threads once the first ones took long to answer."""
    begun = time.perf_counter()
    first = [ask(one) for one in about[:_FIRST]]
    if time.perf_counter() - begun < _SLOW * len(first):
        return first + [ask(one) for one in about[_FIRST:]]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_THREADS) as pool:
        return first + list(pool.map(ask, about[_FIRST:]))
