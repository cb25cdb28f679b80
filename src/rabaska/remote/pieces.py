"""What is missing of a parcel there, file by file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rabaska.node import files, packs
from rabaska.remote.place import Parcel


@dataclass(frozen=True)
class Piece:
    """What is missing of one file."""

    parcel: Parcel
    name: str  # of the file in its parcel; empty when the parcel is one file
    offset: int  # so many bytes are there
    length: int  # so many follow, to its end

    @property
    def source(self) -> Path:
        return self.parcel.source / self.name if self.name else self.parcel.source

    @property
    def target(self) -> str:
        partial = f"{self.parcel.target}{files.PARTIAL}"
        return f"{partial}/{self.name}" if self.name else partial

    @property
    def is_needed(self) -> bool:
        return self.length > 0 or self.offset == 0  # an empty file must be made, too


def pieces(parcel: Parcel, arrived: Sequence[int]) -> Iterator[Piece]:
    for (name, size), offset in zip(_files(parcel), arrived, strict=True):
        yield Piece(parcel, name, offset, size - offset)


def described(parcel: Parcel, *, proof: bool = False) -> dict[str, Any]:
    """The parcel as the far end reads it; with proof, each file's sha256 is told, too."""
    return {
        "target": parcel.target,
        "files": [[name, size, _sha256(parcel, name) if proof else ""]
                  for name, size in _files(parcel)],
    }  # fmt: skip


def _sha256(parcel: Parcel, name: str) -> str:
    return parcel.digests.get(name) or packs.sha256_of(str(parcel.source / name))


def _files(parcel: Parcel) -> Iterator[tuple[str, int]]:
    if not parcel.source.is_dir():
        yield "", parcel.source.stat().st_size
        return
    for path in sorted(parcel.source.rglob("*")):
        if path.is_file():
            yield path.relative_to(parcel.source).as_posix(), path.stat().st_size
