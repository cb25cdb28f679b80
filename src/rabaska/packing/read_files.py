"""Files read one after the other where that is fast, and many at once where each one takes long.

A warm cache is quickest without threads, which only take turns. A cold disk takes long to read
from, but not to open files: the system is told what comes, and fetches it meanwhile. Where opening
takes as long, as on a shared file system, only threads help.
"""

import os
import resource
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from rabaska.errors import DatasetError
from rabaska.packing.compiled import take
from rabaska.packing.listing import unreadable
from rabaska.packing.tar_batches import SMALL, Portion, alone

T = TypeVar("T")
S = TypeVar("S")

_FIRST, _FEW = 16, 256  # files read before looking at the clock
_WHOLE = 2**20  # below this size a file is read whole by one of many
_PIECE = 2**18  # small enough for a few to stay in the processor's cache
_THREADS = 32
_SLOW = 40e-6  # seconds for a file; a warm one takes 5 to 20
_CAN_ANNOUNCE = hasattr(os, "posix_fadvise")  # not on macOS
# A file may have become a link, or a pipe that would block, since it was listed.
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class Large(NamedTuple):
    """A file that has to be read in pieces."""

    name: bytes
    status: os.stat_result


class Direct(NamedTuple):
    """Files that are in their shard already."""

    files: int
    bytes: int


Read = Portion | Large | Direct
Take = Callable[[int, int], Direct | None]  # so many files, after so many that were read


class Reader:
    """Reads files below the folder that this process stands in."""

    def __init__(self, source: bytes, *, follow_links: bool) -> None:
        self._source = source
        self.flags = _OPEN if follow_links else _OPEN | os.O_NOFOLLOW
        self._buffer: memoryview | None = None  # made for the first large file

    def portions(
        self, names: Sequence[bytes], directly: Take = lambda _, __: None
    ) -> Iterator[Read]:
        """All files in their order, some at a time; `directly` those that it can read itself."""
        done, few = 0, _FIRST
        some: Read | None = None
        foresight: _ReadAhead | None = None
        while done < len(names):
            clock = Clock()
            direct = directly(done, few)
            if direct is not None:
                some = direct
            elif isinstance(some, Large):  # its neighbour is likely large as well
                some = self.alone(names[done])
            else:
                some = self._some(list(names[done : done + few]), SMALL)
            waited = clock.waited(_count(some))
            done, few = done + _count(some), 4 * _FEW if direct else _FEW
            yield some
            if waited and foresight is None:
                foresight = _ReadAhead(names, done, self.flags)
            if foresight is not None and not foresight.keeps_ahead(done):
                from rabaska.packing.parallel_read import ParallelReader  # takes long to import

                yield from ParallelReader(self._all, _size).results(list(names[done:]))
                return

    def alone(self, name: bytes, whole: int = SMALL) -> Read:
        """One file: with its content if it has less than `whole` bytes."""
        try:
            descriptor = os.open(name, self.flags)
            try:
                status = os.fstat(descriptor)
                large = status.st_size >= whole
                content = b"" if large else os.read(descriptor, status.st_size + 1)
            finally:
                os.close(descriptor)
        except OSError as problem:
            raise self._unreadable(name, problem) from problem
        if not stat.S_ISREG(status.st_mode) or not (large or len(content) == status.st_size):
            raise self.changed(name)
        return Large(name, status) if large else alone(name, status, content)

    def pieces(self, file: Large) -> Iterator[memoryview]:
        """The content of a large file, which must stay as it is.

        Every piece but the last is full. It is gone when the next one is asked for.
        """
        read, size = 0, file.status.st_size
        buffer = self._buffer = self._buffer or memoryview(bytearray(_PIECE))
        try:
            descriptor = os.open(file.name, self.flags)
            try:
                while read < size and (piece := _filled(buffer, descriptor)):
                    read += len(piece)
                    yield piece
                read += len(os.read(descriptor, 1))  # a file that grew shows itself
                status = os.fstat(descriptor)
            finally:
                os.close(descriptor)
        except OSError as problem:
            raise self._unreadable(file.name, problem) from problem
        if read != size or _version(status) != _version(file.status):
            raise self.changed(file.name)

    def changed(self, name: bytes) -> DatasetError:
        return DatasetError(
            f"{os.fsdecode(os.path.join(self._source, name))} changed while it was packed",
            why="its size or modification time changed after packing began",
            hint="run the command again when no program writes into the folder",
        )

    def broken(self, name: bytes, why: int) -> DatasetError:
        """Of a file that could not be read to its end; -1: it is not what it was."""
        if why < 0:
            return self.changed(name)
        return self._unreadable(name, OSError(why, os.strerror(why)))

    def _all(self, names: list[bytes]) -> list[Read]:
        portions: list[Read] = []
        done = 0
        while done < len(names):
            portions.append(self._some(names[done:], _WHOLE))
            done += _count(portions[-1])
        return portions

    def _some(self, names: list[bytes], whole: int) -> Read:
        """The first of these files, or the first few."""
        portion = take(names, self.flags)
        return portion if portion.names else self.alone(names[0], whole)

    def _unreadable(self, name: bytes, problem: OSError) -> DatasetError:
        return unreadable(os.fsdecode(os.path.join(self._source, name)), problem)


class _ReadAhead:
    """Has the system fetch the files that are read next: a disk brings many as soon as one."""

    def __init__(self, names: Sequence[bytes], announced: int, flags: int) -> None:
        self._names = names
        self._announced = announced  # so many of them need not be announced any more
        self._flags = flags
        self._few = _FIRST

    def keeps_ahead(self, done: int) -> bool:
        """Announce what comes after the first `done`; False if that alone makes us wait."""
        if not _CAN_ANNOUNCE:
            return False
        if self._announced >= min(done + _FEW, len(self._names)):
            return True
        begin = max(self._announced, done)
        coming = self._names[begin : begin + self._few]
        clock = Clock()
        for name in coming:
            self._announce(name)
        self._announced, self._few = begin + len(coming), 2 * _FEW
        return not clock.waited(len(coming))

    def _announce(self, name: bytes) -> None:
        with suppress(OSError):  # who reads it says so
            descriptor = os.open(name, self._flags)
            try:
                os.posix_fadvise(descriptor, 0, SMALL, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(descriptor)


def _filled(buffer: memoryview, descriptor: int) -> memoryview:
    """What is next in the file: as much as fits, unless the file ends."""
    filled = 0
    while filled < len(buffer):
        count = os.readv(descriptor, [buffer[filled:]])
        if not count:
            break
        filled += count
    return buffer[:filled]


def _count(read: Read) -> int:
    if isinstance(read, Direct):
        return read.files
    return len(read.names) if isinstance(read, Portion) else 1


def _size(read: Read) -> int:
    return len(read.tar) if isinstance(read, Portion) else 0


def _version(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


class Clock:
    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._waits = _waits()

    def waited(self, count: int) -> bool:
        """Whether each of `count` files made us wait since the clock was started.

        A busy processor makes us slow as well, but not wait: threads would not help.
        """
        slow = time.perf_counter() - self._begun > count * _SLOW
        return slow and _waits() - self._waits > count / 2


def _waits() -> int:
    """How often this thread gave the processor away because it waited for something."""
    # Only Linux counts for each thread; elsewhere the whole process stands for its one thread.
    who = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
    return resource.getrusage(who).ru_nvcsw


def at_once(query: Callable[[T], S], items: Sequence[T]) -> list[S]:
    """`ask` of each, with threads once the first ones took long to answer."""
    clock = Clock()
    first = [query(item) for item in items[:_FIRST]]
    if not clock.waited(len(first)):
        return first + [query(item) for item in items[_FIRST:]]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_THREADS) as pool:
        return first + list(pool.map(query, items[_FIRST:]))
