"""Small files written many at a time, by C where it is here."""

import os
from bisect import bisect_right
from itertools import groupby, repeat
from operator import add
from typing import Iterator, List, Tuple

from ..native import compiled
from .blocks import write_at
from .index_columns import OFFSET, SIZE, WINDOW, Files, FileSpan, Group, column
from .pack_format import Index
from .pack_safety import twin
from .read_ahead import windows

_TOGETHER = 128  # files that are open at once: systems allow 256 or more
# Never through a link, never over something that is there.
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class FileWriter:
    """Writes files below an open folder, and wanders to do so; the process stands in it first."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._parent = b""

    def write(self, listed: Files, begin: int, contents: List[memoryview]) -> None:
        for first, last in _portions(listed.parents, begin, begin + len(contents)):
            self._enter(listed.parents[first])
            _write_here(listed, first, contents[first - begin : last - begin])

    def _enter(self, parent: bytes) -> None:
        if parent != self._parent:
            folder = os.open(parent or b".", FOLDER, dir_fd=self._top)
            os.fchdir(folder)
            os.close(folder)
            self._parent = parent


def _portions(parents: List[bytes], begin: int, end: int) -> Iterator[Tuple[int, int]]:
    """From where to where files lie in one folder, not too many at a time."""
    for _, group in groupby(range(begin, end), parents.__getitem__):
        places = list(group)
        for first in range(places[0], places[-1] + 1, _TOGETHER):
            yield first, min(first + _TOGETHER, places[-1] + 1)


def _write_here(listed: Files, begin: int, contents: List[memoryview]) -> None:
    end = begin + len(contents)
    try:
        opened = list(
            map(os.open, listed.bases[begin:end], repeat(CREATE), listed.modes[begin:end])
        )
    except FileExistsError as problem:
        raise twin(os.path.join(listed.parents[begin], problem.filename))
    if list(map(os.write, opened, contents)) != listed.sizes[begin:end]:
        for target, content in zip(opened, contents):
            write_at(target, content, 0)
    for target, time in zip(opened, listed.times[begin:end]):
        os.utime(target, ns=(time, time))
    _close(opened)


def _close(opened: List[int]) -> None:
    """Close files, in one call if their numbers follow one another.

    They do, unless a thread that reads ahead opened or closed something meanwhile.
    """
    first, last = min(opened), max(opened)
    if last - first < len(opened):
        os.closerange(first, last + 1)
    else:
        for target in opened:
            os.close(target)


def write(index: Index, span: FileSpan, path: str, size: int, top: int) -> int:
    """Write files below the open folder `top`; how many of the first were written.

    Their shard lies at `path` and has so many bytes.
    """
    if compiled is None:
        return 0
    layout, begin = index.layout, span.begin
    offsets = column(index, OFFSET, begin, span.end)
    ends = list(map(add, offsets, column(index, SIZE, begin, span.end)))
    if max(ends) > size:
        return 0
    together = list(_groups(offsets, ends))
    # Where files are not in order, a part may seem to end before it begins.
    parts = [(offsets[a], max(0, ends[b - 1] - offsets[a])) for a, b in together]
    done = begin
    for (first, last), part, window in zip(together, parts, windows(path, parts)):
        done += compiled.unpack(
            index.map,
            layout.files,
            layout.names_at,
            begin + first,
            begin + last,
            span.shard,
            window,
            part[0],
            top,
        )
        if done < begin + last:
            break
    return done - begin


def _groups(offsets: List[int], ends: List[int]) -> Iterator[Group]:
    """As `columns.groups` for files that lie in order."""
    first = 0
    while first < len(ends):
        last = max(first + 1, bisect_right(ends, offsets[first] + WINDOW, first))
        yield first, last
        first = last
