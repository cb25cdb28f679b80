"""Small files written many at a time: every step is taken for all of them before the next."""

import os
from itertools import groupby, repeat
from typing import Iterator, List, Tuple

from .blocks import write_at
from .columns import Files
from .inspection import twin

_TOGETHER = 128  # files that are open at once: systems allow 256 or more
# Never through a link, never over something that is there.
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class Writer:
    """Writes files below an open folder, and wanders to do so; the process stands in it first."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._parent = b""

    def write(self, found: Files, begin: int, contents: List[memoryview]) -> None:
        for first, last in _portions(found.parents, begin, begin + len(contents)):
            self._enter(found.parents[first])
            _write_here(found, first, contents[first - begin : last - begin])

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


def _write_here(found: Files, begin: int, contents: List[memoryview]) -> None:
    end = begin + len(contents)
    try:
        opened = list(map(os.open, found.bases[begin:end], repeat(CREATE), found.modes[begin:end]))
    except FileExistsError as problem:
        raise twin(os.path.join(found.parents[begin], problem.filename))
    if list(map(os.write, opened, contents)) != found.sizes[begin:end]:
        for target, content in zip(opened, contents):
            write_at(target, content, 0)
    for target, time in zip(opened, found.times[begin:end]):
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
