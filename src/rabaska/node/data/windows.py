"""Parts of a file, one after the other: from slow storage in several streams."""

import io
import os
from typing import Iterator, Sequence, Tuple

from .ahead import Watch, ahead

Part = Tuple[int, int]  # from there on so many bytes


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
