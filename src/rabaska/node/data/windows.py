"""Many small files read at once: the window of a shard in which they lie."""

import io
import os
from typing import Iterator, List, Tuple

from .ahead import Watch, ahead
from .columns import Files

_WINDOW = 2**20

Group = Tuple[int, int]  # files from here to there


def groups(found: Files) -> Iterator[Group]:
    """Neighbours that are read at once; a file larger than a window stands alone."""
    begin, start = 0, found.offsets[0]
    for number, (offset, size) in enumerate(zip(found.offsets, found.sizes)):
        if not 0 <= offset + size - start <= _WINDOW and number > begin:
            yield begin, number
            begin, start = number, offset
    yield begin, len(found.names)


def windows(path: str, found: Files, together: List[Group]) -> Iterator[memoryview]:
    """The window of each group, shorter where the shard ends; it may change with the next one.

    One after the other into the same memory, which is quickest, until one keeps us waiting.
    """
    room = bytearray(max(_span(found, group)[1] for group in together))
    done, slow = 0, False
    with open(path, "rb", buffering=0) as source:
        while done < len(together) and not slow:
            watch = Watch()
            window = _filled(source, memoryview(room), *_span(found, together[done]))
            done, slow = done + 1, watch.was_slow(len(window))
            yield window
    if done < len(together):
        yield from ahead(lambda group: _window(path, *_span(found, group)), together[done:])


def _span(found: Files, group: Group) -> Tuple[int, int]:
    """Where the window begins, and how long it is."""
    start, last = found.offsets[group[0]], group[1] - 1
    return start, found.offsets[last] + found.sizes[last] - start


def _filled(source: io.RawIOBase, room: memoryview, start: int, size: int) -> memoryview:
    source.seek(start)
    filled = 0
    while filled < size:
        count = source.readinto(room[filled:size])
        if not count:
            break
        filled += count
    return room[:filled]


def _window(path: str, start: int, size: int) -> memoryview:
    # Opened anew: some file systems serve one read after the other on each descriptor.
    source = os.open(path, os.O_RDONLY)
    try:
        return memoryview(read_at(source, size, start))
    finally:
        os.close(source)


def read_at(source: int, size: int, offset: int) -> bytes:
    """So many bytes from there; fewer where the file ends."""
    content = os.pread(source, size, offset)
    while 0 < len(content) < size:
        more = os.pread(source, size - len(content), offset + len(content))
        if not more:
            break
        content += more
    return content
