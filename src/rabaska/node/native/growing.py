"""What grows in C: the digest of a shard, and the shard itself."""

import os
from array import array
from ctypes import byref
from typing import Any, List, Tuple

from .buffers import Pinned, address, column, unwritten
from .library import Outcome, Request, library

GROUP = 8 * 16384  # bytes that are digested at once
BLOCK = 16 * 2**20  # bytes of a shard that have a crc32 of their own
NUMBERS = 5
_RECORD = 64
_TREE = 512  # bytes of a digest that grows, and some to spare
_DIGEST = 32


class Tree:
    """A digest that grows; see `tree.c`."""

    def __init__(self) -> None:
        self._state = column("B", _TREE)
        self._waiting = column("B", GROUP)  # the last leaf is told from others: it is kept back
        self._filled = 0
        library.tree_begin(address(self._state))

    def update(self, piece: Any) -> None:
        view = memoryview(piece).cast("B")
        if self._filled + len(view) > GROUP and self._filled:
            rest = GROUP - self._filled
            self._keep(view[:rest])
            view = view[rest:]
            library.tree_add(address(self._state), address(self._waiting), 1)
            self._filled = 0
        groups = (len(view) - 1) // GROUP if view else 0
        if groups:
            with Pinned(view) as (buffer,):
                library.tree_add(address(self._state), buffer.address, groups)
        self._keep(view[groups * GROUP :])

    def digest(self) -> bytes:
        """Nothing may be added afterwards."""
        made = unwritten(_DIGEST)
        library.tree_end(address(self._state), address(self._waiting), self._filled, made)
        return made

    def _keep(self, view: memoryview) -> None:
        memoryview(self._waiting)[self._filled : self._filled + len(view)] = view
        self._filled += len(view)


class NativeShard:
    """A file that grows: what is added is summed, digested and written."""

    def __init__(self, descriptor: int) -> None:
        self.size = 0
        self._state = unwritten(library.shard_size())
        self._sums = column("I", 64)
        library.shard_begin(self._state, descriptor)

    def add(self, piece: Any) -> None:
        self._make_room(len(piece))
        with Pinned(piece) as (buffer,):
            _raise(library.shard_add(self._state, address(self._sums), buffer.address, buffer.size))
        self.size += len(piece)

    def take(
        self, names: Tuple[int, int, int], labels: "array[int]", limits: Tuple[int, ...]
    ) -> Tuple[int, int, int, "array[int]", bytes, int]:
        """Read files into the shard, one for each label, up to one that is not ordinary.

        `names`: addresses of all names and of where each of these ends; where the first begins.
        `limits`: when packing began in ns, since when nothing may have changed; bytes that fit;
        bytes that are too many for one file; flags to open it with. How many files were read, their
        bytes, the newest change; facts and records of each; the error of reading the next one if
        parts of it are in the shard, or -1 if it changed.
        """
        count, outcome = len(labels), Outcome()
        facts, records = column("q", NUMBERS * count), unwritten(_RECORD * count)
        begun, room, large, flags = limits
        self._make_room(max(room, 0))
        request = Request(*names, count, begun, room, large, flags)
        taken = library.shard_take(
            self._state,
            address(self._sums),
            byref(request),
            address(labels),
            address(facts),
            records,
            byref(outcome),
        )
        _raise(outcome.error)
        if taken:
            # The last record says how far the shard reaches.
            last = records[_RECORD * (taken - 1) : _RECORD * taken]
            size = int.from_bytes(last[8:16], "little")
            self.size = int.from_bytes(last[:8], "little") + size + -size % 512
        made = facts[: NUMBERS * taken], records[: _RECORD * taken]
        return (taken, outcome.bytes, outcome.newest) + made + (outcome.broken,)

    def finished(self) -> Tuple[bytes, List[int]]:
        """Its digest, and the crc32 of each block; nothing may be added afterwards."""
        made = unwritten(_DIGEST)
        _raise(library.shard_end(self._state, address(self._sums), made))
        return made, self._sums[: -(-self.size // BLOCK)].tolist()

    def _make_room(self, more: int) -> None:
        missing = (self.size + more) // BLOCK + 2 - len(self._sums)
        if missing > 0:
            self._sums.extend(column("I", missing + len(self._sums)))


def _raise(number: int) -> None:
    if number:
        raise OSError(number, os.strerror(number))
