"""A file in which a program leaves numbers, read on from where it was left."""

import os
import zlib
from typing import Any, Dict, List, NamedTuple, Optional

AT_ONCE = 4 * 1024 * 1024  # bytes that are read together
_HEAD = 64  # bytes at the beginning that tell one file from another of its name


class Point(NamedTuple):
    name: str
    step: Optional[float]  # whole, but for a part of an epoch
    moment: Optional[float]  # seconds since 1970; None: when it was found
    value: float


class Source:
    """One file. `read` gives what is new; the offset is kept from job to job.

    A file that became shorter, or begins otherwise than it did, is read from its beginning: who
    takes the points drops those that were told already.
    """

    kind = ""
    is_text = False

    def __init__(self, path: str, offset: int = 0, head: int = 0) -> None:
        self.path = path
        self.offset = offset
        self.head = head  # a checksum of its first bytes
        self._seen: Any = None

    def state(self) -> Dict[str, int]:
        return {"offset": self.offset, "head": self.head}

    def skip(self) -> None:
        """Begin at the end: what the file holds is older than the program."""
        try:
            status = os.stat(self.path)
            with open(self.path, "rb") as stream:
                self._note_beginning(stream.read(_HEAD))
        except OSError:
            return
        self.offset = status.st_size
        self._seen = (status.st_size, status.st_mtime_ns, status.st_ino)

    def begin(self) -> None:
        """What was learned of the file so far no longer holds: it is read from its beginning."""

    def points(self, data: bytes) -> List[Point]:
        """The points of `data`, which lies at the offset; moves it behind what was understood."""
        raise NotImplementedError

    def read(self, most: int = 8 * AT_ONCE) -> List[Point]:
        """What is new, of at most so many bytes; nothing where the file cannot be read."""
        try:
            status = os.stat(self.path)
            seen = (status.st_size, status.st_mtime_ns, status.st_ino)
            if seen == self._seen:
                return []
            with open(self.path, "rb") as stream:
                found = self._read_on(stream, status.st_size, most)
        except OSError:
            return []
        # Not where there was more to read than this: the next look goes on.
        self._seen = seen if status.st_size - self.offset < most else None
        return found

    def _read_on(self, stream: Any, size: int, most: int) -> List[Point]:
        self._check_beginning(stream, size)
        found: List[Point] = []
        until = self.offset + most
        while self.offset < until:
            before = self.offset
            stream.seek(before)
            data = stream.read(AT_ONCE)
            found += self.points(data)
            if self.offset == before or len(data) < AT_ONCE:
                break
        return found

    def _check_beginning(self, stream: Any, size: int) -> None:
        first = stream.read(_HEAD)
        length, known = self.head >> 32, self.head & 0xFFFFFFFF
        same = len(first) >= length and zlib.crc32(first[:length]) & 0xFFFFFFFF == known
        if size < self.offset or (length and not same):
            self.offset = 0
            self.begin()
        self._note_beginning(first)

    def _note_beginning(self, first: bytes) -> None:
        self.head = len(first) << 32 | zlib.crc32(first) & 0xFFFFFFFF


def complete_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]
