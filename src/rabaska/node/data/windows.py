"""Parts of a file read one after the other: the windows of a shard in which small files lie."""

import io
import os
from typing import Iterator, List, Sequence, Tuple

from .ahead import Watch, ahead
from .columns import Files

WINDOW = 2**20  # bytes; a larger file is a window of its own

Group = Tuple[int, int]  # files from here to there
Part = Tuple[int, int]  # from there on so many bytes


def groups(found: Files) -> Iterator[Group]:
    """Neighbours that are read at once; a file larger than a window stands alone."""
    begin, start = 0, found.offsets[0]
    for number, (offset, size) in enumerate(zip(found.offsets, found.sizes)):
        if not 0 <= offset + size - start <= WINDOW and number > begin:
            yield begin, number
            begin, start = number, offset
    yield begin, len(found.names)


def parts(found: Files, together: List[Group]) -> List[Part]:
    """The windows in which these groups lie."""
    ends = [(group[0], group[1] - 1) for group in together]
    return [
        (found.offsets[first], found.offsets[last] + found.sizes[last] - found.offsets[first])
        for first, last in ends
    ]


def windows(path: str, wanted: Sequence[Part]) -> Iterator[memoryview]:
    """Each part of the file, shorter where it ends; it may change with the next one.

    One after the other into the same memory, which is quickest, until one keeps us waiting.
    """
    room = bytearray(max((size for _, size in wanted), default=0))
    done, slow = 0, False
    with open(path, "rb", buffering=0) as source:
        while done < len(wanted) and not slow:
            watch = Watch()
            window = _filled(source, memoryview(room), *wanted[done])
            done, slow = done + 1, watch.was_slow(len(window))
            yield window
    if done < len(wanted):
        yield from ahead(lambda part: _window(path, *part), wanted[done:])


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
