"""What is missing of a parcel there, file by file."""

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Any

from rabaska.domain.untrusted import Unexpected
from rabaska.node import files
from rabaska.node.data import pack_format
from rabaska.remote.place import Parcel

_REPORT_EVERY = 256 << 10  # bytes; ssh takes them in smaller sips, and a bar is not drawn for each


@dataclass(frozen=True)
class MissingPiece:
    """One file of a parcel, and how much of it is there."""

    name: str  # empty when the parcel is one file
    path: Path
    size: int
    arrived: int

    @property
    def missing(self) -> int:
        return self.size - self.arrived

    def poured(self, feed: BufferedWriter) -> Iterator[int]:
        """Give what is missing to a pipe; how many bytes went, each time it is worth telling."""
        unreported, left = 0, self.missing
        with self.path.open("rb", buffering=0) as stream:
            stream.seek(self.arrived)
            while left and (count := _pour(stream, feed, left)):
                left, unreported = left - count, unreported + count
                if unreported >= _REPORT_EVERY or not left:
                    yield unreported
                    unreported = 0

    def chunks(self, length: int) -> Iterator[memoryview]:
        """What is missing, `length` bytes at a time, each in the place of the one before."""
        left, room = self.missing, memoryview(bytearray(length))
        with self.path.open("rb", buffering=0) as stream:
            stream.seek(self.arrived)
            while left and (count := stream.readinto(room[:left])):
                yield room[:count]
                left -= count


@dataclass(frozen=True)
class Freight:
    """A parcel that is not there yet, or not all of it."""

    parcel: Parcel
    pieces: tuple[MissingPiece, ...]

    @property
    def partial(self) -> str:
        """Where it grows."""
        return f"{self.parcel.target}{files.PARTIAL}"

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)

    @property
    def missing(self) -> int:
        return sum(piece.missing for piece in self.pieces)

    def order(self) -> dict[str, Any]:
        """What the far end must know to take it: names, sizes, proofs, and what will come."""
        return {
            "target": self.parcel.target,
            "files": [
                [piece.name, piece.size, self._sha256(piece), piece.missing]
                for piece in self.pieces
            ],
            "squeezed": self.compressed,
        }

    @cached_property
    def compressed(self) -> bool:
        """Whether its bytes are compressed on their way."""
        return self.parcel.shrinks()

    def _sha256(self, piece: MissingPiece) -> str:
        return self.parcel.digests.get(piece.name) or pack_format.sha256_of(str(piece.path))


def freight(parcel: Parcel, arrived: Sequence[int]) -> Freight:
    """What is missing, given how many bytes of each file are there; Unexpected for too many."""
    listed = [(name, path, path.stat().st_size) for name, path in _files(parcel)]
    if len(listed) != len(arrived):
        raise Unexpected(
            f"the number of files in {parcel.target} is {len(listed)}, not {len(arrived)}"
        )
    pieces = [
        MissingPiece(name, path, size, min(count, size))
        for (name, path, size), count in zip(listed, arrived, strict=True)
    ]
    return Freight(parcel, tuple(pieces))


def question(parcel: Parcel) -> dict[str, Any]:
    """The parcel as the far end reads it to say how much of it is there."""
    listed = [[name, path.stat().st_size] for name, path in _files(parcel)]
    return {"target": parcel.target, "files": listed, "doubted": parcel.doubted}


def _files(parcel: Parcel) -> Iterator[tuple[str, Path]]:
    if not parcel.source.is_dir():
        yield "", parcel.source
        return
    for path in sorted(parcel.source.rglob("*")):
        if path.is_file():
            yield path.relative_to(parcel.source).as_posix(), path


def _pour(stream: FileIO, feed: BufferedWriter, most: int) -> int:
    """Move some bytes from a file into a pipe; they are not copied if the system can help it."""
    try:
        feed.flush()
        return os.splice(stream.fileno(), feed.fileno(), most)
    except AttributeError:
        pass  # macOS
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
    piece = stream.read(min(most, _REPORT_EVERY))
    feed.write(piece)
    return len(piece)
