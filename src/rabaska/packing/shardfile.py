"""A shard being written: large writes, one digest of it all, a crc32 for each block."""

import hashlib
import os
from zlib import crc32

from rabaska.node.data.packs import BLOCK, Shard


class ShardFile:
    """`pieces` may be added to directly; `size` is kept by whoever adds them."""

    def __init__(self, path: str) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self._path = path
        self._stream = open(path, "wb", buffering=0)
        self._digest = hashlib.sha256()
        self._crcs: list[int] = []
        self._written = 0

    @property
    def waiting(self) -> int:
        return self.size - self._written

    def flush(self) -> None:
        data = b"".join(self.pieces)
        self.pieces.clear()
        self.write(data)

    def write(self, data: bytes) -> None:
        """Write what comes after all that was flushed."""
        self._digest.update(data)
        rest = memoryview(data)
        self._check_blocks(rest)
        while rest:
            rest = rest[self._stream.write(rest) :]

    def _check_blocks(self, data: memoryview) -> None:
        while data:
            room = BLOCK - self._written % BLOCK
            if room == BLOCK:
                self._crcs.append(0)
            part = data[:room]
            self._crcs[-1] = crc32(part, self._crcs[-1])
            self._written += len(part)
            data = data[room:]

    def finished(self) -> Shard:
        """What it became; its name is that of the file for now."""
        self.flush()
        return Shard(
            os.path.basename(self._path), self._written, self._digest.hexdigest(), self._crcs
        )

    def close(self) -> None:
        self._stream.close()
