"""Several cuts written by one worker in turn, so that the digests of their shards meet."""

import time
from collections import deque
from collections.abc import Iterator, Sequence

from rabaska.packing import digests
from rabaska.packing.shard_borders import ShardRange
from rabaska.packing.write_shards import Packed, Written

_OFTEN = 0.05  # seconds between two words about progress


def side_by_side(cuts: Sequence[ShardRange], workers: int) -> list[Sequence[ShardRange]]:
    """Which cuts are written in turn; what is too little for all workers alike, alone."""
    paired = len(cuts) - len(cuts) % (digests.COUNT * workers)
    return [
        *(cuts[place : place + digests.COUNT] for place in range(0, paired, digests.COUNT)),
        *([cut] for cut in cuts[paired:]),
    ]


def in_turn(writers: Sequence[Iterator[Packed | Written]]) -> Iterator[Packed | Written]:
    """What they say, a step of each at a time; words about progress are summed up."""
    going = deque(writers)
    files = size = 0
    reported = 0.0
    while going:
        event = next(going[0], None)
        if event is None:
            going.popleft()
            continue
        going.rotate(-1)
        if isinstance(event, Written):
            yield event
            continue
        files, size = files + event.files, size + event.bytes
        if time.monotonic() - reported > _OFTEN:
            yield Packed(files, size)
            files, size, reported = 0, 0, time.monotonic()
    yield Packed(files, size)
