"""A shard being written: large writes, one digest of it all, a crc32 for each block."""

import os
from collections.abc import Iterator

from rabaska.node.data.packs import BLOCK, Shard
from rabaska.packing.lanes import Digest
from rabaska.packing.speed import crc32, joined

_FLUSH = 2**17


class ShardFile:
    """What is added comes in whole blocks of tar."""

    def __init__(self, path: str, digest: Digest) -> None:
        self.size = 0  # with what waits to be written
        self._waiting: list[bytes | memoryview] = []
        self._path = path
        self._stream = open(path, "wb", buffering=0)
        self._digest = digest
        self._crcs: list[int] = []
        self._written = 0

    def add(self, piece: bytes | memoryview) -> None:
        self._waiting.append(piece)
        self.size += len(piece)
        if self.size - self._written >= _FLUSH:
            self._flush()

    def copy(self, piece: memoryview) -> int:
        """Add what its owner will overwrite in a while, and return its crc32."""
        self._flush()
        self.size += len(piece)
        crc = 0
        for part in self._parts(piece):
            new = crc32(part)
            self._crcs[-1] = joined(self._crcs[-1], new, len(part))
            crc = joined(crc, new, len(part))
            self._write(part)
        return crc

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
        one, *others = self._waiting
        piece = memoryview(b"".join(self._waiting) if others else one)
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
