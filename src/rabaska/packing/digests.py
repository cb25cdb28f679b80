"""sha256 of several shards that grow at the same time, two by two where C can do that.

A processor with instructions for sha256 takes hardly longer for two than for one, because each of
their steps waits for the one before.
"""

import hashlib
import struct
from collections import deque
from collections.abc import Callable
from typing import Protocol

from rabaska.packing.compiled import digest

COUNT = 2 if digest else 1  # shards that one worker should write at the same time
HELD = 3  # pieces that a digest may still look at after it was given them

_WORDS = struct.Struct("=8I")
_BEGIN = _WORDS.pack(
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19
)
_END, _LENGTH = b"\x80" + bytes(55), struct.Struct(">Q")


class Digest(Protocol):
    def update(self, piece: memoryview, /) -> None: ...
    def hexdigest(self) -> str: ...


Begin = Callable[[], Digest]


class ShardDigest:
    """One sha256; what it was given waits for as much from another."""

    def __init__(self, lanes: "ShardDigests") -> None:
        self.state = bytearray(_BEGIN)
        self.waiting: deque[memoryview] = deque()
        self._lanes = lanes
        self._length = 0

    def update(self, piece: memoryview, /) -> None:
        """Take a piece of whole blocks; it must stay as it is until `HELD` more were taken."""
        self.waiting.append(piece)
        self._length += len(piece)
        self._lanes.meet(self)
        self._go_on(HELD)

    def hexdigest(self) -> str:
        self.waiting.append(memoryview(_END + _LENGTH.pack(8 * self._length)))
        self._go_on(0)
        return struct.pack(">8I", *_WORDS.unpack(self.state)).hex()

    def _go_on(self, held: int) -> None:
        """Digest alone what waits, but for so many pieces."""
        while len(self.waiting) > held:
            self._lanes.digest(self.state, self.waiting.popleft())


class ShardDigests:
    """Lanes of which the last two that were given something go on together."""

    def __init__(self, digest: Callable[..., None]) -> None:
        self.digest = digest  # of one state and piece, or of two
        self._last: ShardDigest | None = None

    def begin(self) -> ShardDigest:
        return ShardDigest(self)

    def meet(self, lane: ShardDigest) -> None:
        other, self._last = self._last, lane
        if other is None or other is lane:
            return
        while lane.waiting and other.waiting:
            mine, theirs = lane.waiting.popleft(), other.waiting.popleft()
            both = min(len(mine), len(theirs))
            self.digest(lane.state, mine[:both], other.state, theirs[:both])
            for grown, rest in ((lane, mine[both:]), (other, theirs[both:])):
                if rest:
                    grown.waiting.appendleft(rest)
        if other.waiting:
            self._last = other


def digests() -> Begin:
    """What begins a digest, again and again; those that grow at the same time go on together."""
    return ShardDigests(digest).begin if digest else hashlib.sha256
