"""Whether packing and compressing a folder pay, from figures measured on it."""

import os
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rabaska.domain.data_placement import DatasetSize, TierSpeed, best_mode
from rabaska.errors import DatasetError
from rabaska.packing.listing import Listing, unreadable

_SAMPLED = 300
_FEW_FILES, _LARGE_FILE = 1000, 8 * 10**6
_PAYS = 0.7  # a dataset that shrinks to this part is worth compressing on its way
_PIECE = 2**20


@dataclass(frozen=True)
class Advice:
    """What was measured, and what follows from it."""

    files: int
    bytes: int  # about, from a sample
    seconds_per_file: float  # to open and read one, not from the cache
    speed: float  # bytes per second of this disk, as shards are read
    shrinks_to: float  # part of its size, compressed
    pack: bool
    mode: str  # "files" or "shards"
    tiers: tuple[TierSpeed, ...] = ()  # of the cluster that was asked about
    tier: str = ""  # where it would be read there
    why: str = ""
    python_only: str = ""  # why the compiled part of rabaska does not load there

    @property
    def dataset(self) -> DatasetSize:
        return DatasetSize(self.files, self.bytes)

    @property
    def read_as_files(self) -> float:
        """Seconds to read everything once, one file after the other."""
        return self.files * self.seconds_per_file

    @property
    def read_as_shards(self) -> float:
        return self.bytes / self.speed if self.speed else 0.0

    @property
    def compresses(self) -> bool:
        return self.shrinks_to <= _PAYS


def advise(source: Path, speed: float) -> Advice:
    """What is to be done with a folder on a disk that reads so many bytes per second."""
    names = [name for some in Listing(os.fsencode(source)) for name in some.one_by_one()]
    if not names:
        raise DatasetError(f"there is no file in {source}", hint="check the path")
    chosen = names[:: max(1, len(names) // _SAMPLED)]
    contents, spent, sizes = _read(os.fsencode(source), chosen)
    mean = sum(sizes) / len(sizes)
    total = int(mean * len(names))
    per_file = spent / len(chosen)
    return Advice(
        files=len(names),
        bytes=total,
        seconds_per_file=per_file,
        speed=speed,
        shrinks_to=_shrinks_to(contents),
        pack=not few_large_files(len(names), total),
        mode=best_mode(DatasetSize(len(names), total), None),
    )


def few_large_files(files: int, size: int) -> bool:
    """Whether packing would not make reading quicker."""
    return files < _FEW_FILES and size >= _LARGE_FILE * files


def _read(source: bytes, names: Sequence[bytes]) -> tuple[list[bytes], float, list[int]]:
    """The beginnings of these files, read past the cache; how long it took; their sizes."""
    contents, sizes, spent = [], [], 0.0
    for name in names:
        path = os.path.join(source, name)
        try:
            _forget(path)
            begun = time.perf_counter()
            descriptor = os.open(path, os.O_RDONLY)
            contents.append(os.read(descriptor, _PIECE))
            spent += time.perf_counter() - begun
            sizes.append(os.fstat(descriptor).st_size)
            os.close(descriptor)
        except OSError as problem:
            raise unreadable(os.fsdecode(path), problem) from problem
    return contents, spent, sizes


def _forget(path: bytes) -> None:
    if hasattr(os, "posix_fadvise"):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _shrinks_to(contents: Sequence[bytes]) -> float:
    before = sum(map(len, contents))
    after = sum(len(zlib.compress(content, 1)) for content in contents)
    return after / before if before else 1.0
