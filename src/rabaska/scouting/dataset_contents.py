"""What a dataset is made of: how many files, how large, which of them twice or empty."""

import hashlib
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

MOST_FILES = 200_000
LONGEST = 5.0  # seconds for looking, and as many for comparing
_LEAST_COMPARED = 1024  # bytes; smaller files are often alike and cost nothing
_MOST_READ = 512 * 10**6  # bytes read to compare files
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".7z", ".rar")
_MEANT_EMPTY = (".gitkeep", ".keep", ".gitignore", "__init__.py")


@dataclass(frozen=True)
class Contents:
    """`complete` is false when a bounded read_contents did not see all."""

    files: int = 0
    size: int = 0  # bytes
    archives: tuple[tuple[str, int], ...] = ()  # name, bytes
    empty: tuple[str, ...] = ()  # files without content that should have some
    twice: int = 0  # files whose content another file has too
    twice_size: int = 0  # bytes of those
    complete: bool = True


def read_contents(*places: Path, compare: bool = False) -> Contents:
    """Names and sizes of all files of a dataset; with `compare` those of one size are read.

    A place is a folder, or a single file, which is told by no name.
    """
    deadline = time.monotonic() + LONGEST
    files: list[tuple[str, int]] = []
    names: list[tuple[str, int]] = []
    complete = True
    for path, size, name in _files(places):
        files.append((path, size))
        names.append((name, size))
        if len(files) > MOST_FILES or time.monotonic() > deadline:
            complete = False
            break
    twice = list(_twice(files)) if compare else []
    return Contents(
        files=len(files),
        size=sum(size for _, size in files),
        archives=tuple(entry for entry in names if entry[0].lower().endswith(_ARCHIVES)),
        empty=tuple(name for name, size in names if not size and not name.endswith(_MEANT_EMPTY)),
        twice=len(twice),
        twice_size=sum(twice),
        complete=complete,
    )


def _files(places: Iterable[Path]) -> Iterator[tuple[str, int, str]]:
    for place in places:
        for path, size in _walk(place):
            yield path, size, os.path.relpath(path, place)


def _walk(folder: Path) -> Iterator[tuple[str, int]]:
    if folder.is_file():
        yield str(folder), folder.stat().st_size
        return
    waiting = [str(folder)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry.path, entry.stat(follow_symlinks=False).st_size
            except OSError:
                continue


def _twice(files: Iterable[tuple[str, int]]) -> Iterator[int]:
    """The size of each file after the first of those that hold the same."""
    deadline = time.monotonic() + LONGEST
    alike: dict[int, list[str]] = defaultdict(list)
    for path, size in files:
        if size >= _LEAST_COMPARED:
            alike[size].append(path)
    read = 0
    for size, paths in alike.items():
        digests: set[bytes] = set()
        for path in paths if len(paths) > 1 else ():
            read += size
            if read > _MOST_READ or time.monotonic() > deadline:
                return
            digest = _digest(path)
            if digest in digests:
                yield size
            digests.add(digest)


def _digest(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a path from scandir, one of many
            return hashlib.file_digest(file, "blake2b").digest()
    except OSError:
        return path.encode("utf-8", "surrogateescape")
