"""What cannot be read: it is not damaged, and what it holds may be the newest checkpoint.

A ticket that ran out, a server that starts again, a quota of open files: storage that refuses now
answers again in a while. Something that is gone, or a link that leads nowhere, holds nothing.
"""

import errno
import os
from typing import Callable, Iterator, List, Tuple

_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)

Unread = Callable[[OSError], None]  # is told of each file and folder that cannot be read


class Unreadable(OSError):
    """Something that may be the newest checkpoint cannot be read."""

    def __init__(self, path: str, problem: OSError) -> None:
        super().__init__(problem.errno, problem.strerror, path)

    def __str__(self) -> str:
        number = self.errno or 0
        words = self.strerror or os.strerror(number)
        called = errno.errorcode.get(number, str(number))
        told = "cannot read {}, which may be or contain the newest checkpoint: {} ({})"
        return told.format(self.filename, words, called)


def ignored(problem: OSError) -> None:
    """For those who want what can be read, and no more."""


def holds_nothing(problem: OSError) -> bool:
    """Whether there was nothing to read: gone since it was listed, or a link to nothing."""
    return problem.errno in _NOTHING_THERE


def walk(folder: str, unread: Unread) -> Iterator[Tuple[str, List[str], List[str]]]:
    """As `os.walk`, which by itself passes over what it cannot list."""

    def failed(problem: OSError) -> None:
        if not holds_nothing(problem):
            unread(problem)

    return os.walk(folder, onerror=failed)
