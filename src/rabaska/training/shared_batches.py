"""Batches on their way from a DataLoader's worker to the training: through memory that both see.

A pipe holds 64 KiB, so both sides would wait for each other several times for each batch. A worker
offers a shelf along with a batch that takes the pipe; the training opens the shelf, and from then
on batches lie on it. Where that cannot be done, all of them take the pipe. Shelves have no name in
any file system: whoever is killed leaves nothing behind.
"""

import mmap
import os
import threading
from functools import lru_cache
from multiprocessing.reduction import ForkingPickler
from operator import is_
from typing import Any, Dict, List, Optional, Tuple

_PLACES = 8  # batches on a shelf; a DataLoader has two under way for each worker, if not told more
_ROOM = 8 * 2**20  # bytes for a batch; what was never written to takes no memory
_HEAD = mmap.PAGESIZE  # one byte for each place, one that says whether the shelf is in use
_FREE = b"\1"  # new memory is all zero: places are free when the other side says so

# How another process finds a shelf: process, descriptor, and the number of the file behind it,
# since the first two may be somebody else's by then.
Name = Tuple[int, int, int]


class Batch(List[Any]):
    """A list of samples, and nothing else for whoever does not send it to another process."""

    def __init__(self, contents: List[Any], labels: List[int]) -> None:
        super().__init__(zip(contents, labels))
        self.contents, self.labels = contents, labels
        self._made = list(self)

    def is_of_bytes(self) -> bool:
        """Whether it is as it was made, of bytes; a program may have put anything into it."""
        same = len(self) == len(self._made) and all(map(is_, self, self._made))
        return same and set(map(type, self.contents)) == {bytes}

    def __reduce__(self) -> Tuple[Any, ...]:
        return list, (list(self),)


class Shelf:
    """Places in memory, filled by one process and emptied by another."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, _HEAD + _PLACES * _ROOM)
        self._lock = threading.Lock()  # the memory has one place at which it reads and writes

    def use(self) -> None:
        """From now on batches may lie here."""
        if self._memory[_PLACES : _PLACES + 1] != _FREE:
            self._memory[: _PLACES + 1] = _FREE * (_PLACES + 1)

    def put(self, contents: List[bytes], size: int) -> Optional[int]:
        """The place where they lie now, if there was one."""
        with self._lock:
            place = self._memory.find(_FREE, 0, _PLACES)
            if place < 0 or size > _ROOM:
                return None
            self._memory[place] = 0
            self._memory.seek(_HEAD + place * _ROOM)
            for content in contents:
                self._memory.write(content)
        return place

    def take(self, place: int, sizes: List[int]) -> List[bytes]:
        with self._lock:
            self._memory.seek(_HEAD + place * _ROOM)
            contents = list(map(self._memory.read, sizes))
        with self._lock:  # again: no processor may let the other side see this before it has read
            self._memory[place] = _FREE[0]
        return contents


@lru_cache(maxsize=None)
def _own(process: int) -> Optional[Tuple[Name, Shelf]]:
    """The shelf that this process fills; one that was forked makes its own."""
    if not hasattr(os, "memfd_create"):  # before Python 3.8, and not on Linux
        return None
    try:
        descriptor = os.memfd_create("rabaska-batches")
        os.ftruncate(descriptor, _HEAD + _PLACES * _ROOM)
        return (process, descriptor, os.fstat(descriptor).st_ino), Shelf(descriptor)
    except OSError:
        return None


def _sent(batch: Batch) -> Tuple[Any, ...]:
    """How a batch is sent: what to call on the other side, and with what."""
    own = _own(os.getpid())
    if own is None or not batch.is_of_bytes():
        return batch.__reduce__()
    name, shelf = own
    sizes = list(map(len, batch.contents))
    place = shelf.put(batch.contents, sum(sizes))
    if place is None:
        return _offered, (name, list(batch))
    return _taken, (name, place, sizes, batch.labels)


ForkingPickler.register(Batch, _sent)

_known: Dict[Name, Optional[Shelf]] = {}  # shelves of others; None is one that cannot be opened


def _offered(name: Name, samples: List[Any]) -> List[Any]:
    shelf = _shelf(name)
    if shelf is not None:
        shelf.use()
    return samples


def _taken(name: Name, place: int, sizes: List[int], labels: List[int]) -> List[Any]:
    shelf = _shelf(name)
    if shelf is None:
        raise RuntimeError("a batch is lost: process {}, which read it, is gone".format(name[0]))
    return list(zip(shelf.take(place, sizes), labels))


def _shelf(name: Name) -> Optional[Shelf]:
    if name not in _known:
        for other in list(_known):
            if not os.path.exists(_path(other)):  # its worker has ended
                _known.pop(other, None)
        _known[name] = _opened(name)
    return _known[name]


def _opened(name: Name) -> Optional[Shelf]:
    try:
        descriptor = os.open(_path(name), os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # no /proc, or another user's
        return None
    try:
        return Shelf(descriptor) if os.fstat(descriptor).st_ino == name[2] else None
    finally:
        os.close(descriptor)


def _path(name: Name) -> str:
    return "/proc/{}/fd/{}".format(*name[:2])
