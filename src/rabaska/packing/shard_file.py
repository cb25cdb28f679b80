"""A shard as it is written: summed block by block and digested, by C where it can be loaded."""

import os
from array import array
from collections.abc import Iterator
from typing import NamedTuple

from rabaska.node.data.pack_format import BLOCK, Shard
from rabaska.node.data.tree_digest import PREFIX, tree_digest
from rabaska.node.native import compiled
from rabaska.packing.compiled import crc32, joined
from rabaska.packing.listing_file import Columns

_FLUSH = 2**17


class Taken(NamedTuple):
    """Files that were read straight into a shard."""

    files: int
    total: int  # bytes of their contents
    newest: int  # ns: the latest change of any of them
    facts: "array[int]"
    records: bytes  # of the index
    broken: int  # why the next file, a part of which was written, cannot be read; -1: it changed


class TakeLimits(NamedTuple):
    """Which files may be read straight into a shard."""

    begun: int  # ns: what was changed since is looked at alone
    room: int  # bytes of tar that fit
    large: int  # bytes of tar that are too many for one file
    flags: int  # to open files with


class ShardFile:
    """What is added comes in whole blocks of tar."""

    def __init__(self, path: str) -> None:
        self.size = 0  # with what waits to be written
        self._waiting: list[bytes | memoryview] = []
        self._path = path
        self._stream = open(path, "wb", buffering=0)
        self._digest = tree_digest()
        self._crcs: list[int] = []
        self._written = 0

    def add(self, piece: bytes | memoryview) -> None:
        self._waiting.append(piece)
        self.size += len(piece)
        if self.size - self._written >= _FLUSH:
            self._flush()

    def copy(self, piece: memoryview) -> int:
        """Add what its owner will overwrite, and return its crc32."""
        self._flush()
        self.size += len(piece)
        crc = 0
        for part in self._parts(piece):
            new = crc32(part)
            self._crcs[-1] = joined(self._crcs[-1], new, len(part))
            crc = joined(crc, new, len(part))
            self._write(part)
        return crc

    def take(
        self, _listed: Columns, _begin: int, _labels: "array[int]", _limits: TakeLimits
    ) -> Taken | None:
        """Only C reads files straight into a shard."""
        return None

    def finished(self) -> Shard:
        """What it became; its name is that of the file for now."""
        self._flush()
        return Shard(
            os.path.basename(self._path), self._written, self._digest.hexdigest(), self._crcs
        )

    def close(self) -> None:
        self._stream.close()

    def _flush(self) -> None:
        if not self._waiting:
            return
        first, *others = self._waiting
        piece = memoryview(b"".join(self._waiting) if others else first)
        self._waiting.clear()
        for part in self._parts(piece):
            self._crcs[-1] = crc32(part, self._crcs[-1])
            self._write(part)

    def _parts(self, piece: memoryview) -> Iterator[memoryview]:
        """The piece, cut where a block ends; a crc32 for each block it falls into is begun."""
        while piece:
            room = BLOCK - self._written % BLOCK
            if room == BLOCK:
                self._crcs.append(0)
            yield piece[:room]
            piece = piece[room:]

    def _write(self, part: memoryview) -> None:
        self._digest.update(part)
        self._written += len(part)
        while part:
            part = part[self._stream.write(part) :]


class CompiledShardFile:
    """The same in C, which can also read files straight into it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._stream = open(path, "wb", buffering=0)
        self._shard = compiled.NativeShard(self._stream.fileno())

    @property
    def size(self) -> int:
        return int(self._shard.size)

    def add(self, piece: bytes | memoryview) -> None:
        self._shard.add(piece)

    def copy(self, piece: memoryview) -> int:
        self._shard.add(piece)
        return crc32(piece)

    def take(
        self, listed: Columns, begin: int, labels: "array[int]", limits: TakeLimits
    ) -> Taken | None:
        """The first of the files from place `begin` on, one for each label; None if it is none."""
        with compiled.Pinned(listed.names, listed.ends) as (text, ends):
            at = ends.address + begin * listed.ends.itemsize
            names = text.address, at, listed.start(begin)
            taken = Taken(*self._shard.take(names, labels, limits))
        return taken if taken.files or taken.broken else None

    def finished(self) -> Shard:
        digest, crcs = self._shard.finished()
        return Shard(os.path.basename(self._path), self.size, PREFIX + digest.hex(), crcs)

    def close(self) -> None:
        self._stream.close()


def new_shard(path: str) -> ShardFile | CompiledShardFile:
    return ShardFile(path) if compiled is None else CompiledShardFile(path)
