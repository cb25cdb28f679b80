"""Small files written by the compiled part of rabaska, where this Python has it.

It checks and writes as `unpack` does what is ordinary, and stops at the first file that is not.
That file, those after it, and every word about what is wrong, are left to Python.
"""

from bisect import bisect_right
from operator import add
from typing import Iterator, List

from .columns import OFFSET, SIZE, WINDOW, Group, Span, column
from .packs import Index
from .windows import windows

try:
    from rabaska_speed import unpack as _unpack
except ImportError:  # it is optional: only speed is lost
    _unpack = None


def write(index: Index, span: Span, path: str, size: int, top: int) -> int:
    """Write files below the open folder `top`; how many of the first were written.

    Their shard lies at `path` and has so many bytes.
    """
    if _unpack is None:
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
        done += _unpack(
            index.map, layout.files, layout.names_at,
            begin + first, begin + last, span.shard, window, part[0], top,
        )  # fmt: skip
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
