"""Files taken out of a pack, into a folder in which other things may lie already."""

import errno
import os
from typing import Callable, Iterator, List, Optional, Sequence

from .. import partial
from . import workers
from .blocks import write_at
from .inspection import open_pack
from .look import NotInPack, content_of
from .packs import FOLDER, LINK, Entry, Index, Manifest
from .writing import CREATE

_TOGETHER = 200  # files that a process takes at a time

Progress = Callable[[int, int], None]  # bytes written so far, and of how many


def extract(
    folder: str, target: str, below: Sequence[bytes] = (), progress: Optional[Progress] = None
) -> int:
    """Write what is called `below`, or everything, into `target`; how many files that is.

    Each is there whole or not at all. Nothing is overwritten: FileExistsError comes before
    anything is written, and what was taken out before stays as it is.
    """
    manifest, index = open_pack(folder)
    try:
        chosen = _chosen(index, below)
        root = os.fsencode(os.path.abspath(target))
        missing = [place for place in chosen if not _is_there(root, index.entry(place))]
        for path in sorted({_folder(root, index.entry(place)) for place in missing}):
            os.makedirs(path, exist_ok=True)
        files = [place for place in missing if place < index.layout.files]
        steps = _write_files(folder, root, manifest, index, files)
        _tell(steps, sum(index.entry(place).size for place in files), progress)
        for entry in map(index.entry, missing):
            if entry.kind == LINK:
                os.symlink(entry.target, os.path.join(root, entry.name))
        # From the inside out: writing into a folder changes its time.
        for entry in map(index.entry, reversed(chosen)):
            if entry.kind == FOLDER:
                os.chmod(_folder(root, entry), entry.mode)
                os.utime(_folder(root, entry), ns=(entry.mtime_ns, entry.mtime_ns))
        return sum(place < index.layout.files for place in chosen)
    finally:
        index.close()


def _chosen(index: Index, below: Sequence[bytes]) -> Sequence[int]:
    """Where in the index everything is that is called `below`, or lies in it."""
    if not below:
        return range(len(index))
    wanted, found, chosen = set(below), set(), []
    for place, entry in enumerate(index.entries(0, len(index))):
        name = entry.name
        while name and name not in wanted:
            name = os.path.dirname(name)
        if name:
            chosen.append(place)
            found.add(name)
    for name in sorted(wanted - found):
        raise NotInPack("it holds nothing called {}".format(os.fsdecode(name)))
    return chosen


def _is_there(root: bytes, entry: Entry) -> bool:
    """Whether it was taken out before; FileExistsError if something else is there."""
    path = os.path.join(root, entry.name)
    if not os.path.lexists(path):
        return False
    if entry.kind == FOLDER:
        same = os.path.isdir(path)
    elif entry.kind == LINK:
        same = os.path.islink(path) and os.readlink(path) == entry.target
    else:
        found = os.lstat(path)
        same = (found.st_size, found.st_mtime_ns) == (entry.size, entry.mtime_ns)
    if not same:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fsdecode(path))
    return True


def _folder(root: bytes, entry: Entry) -> bytes:
    path = os.path.join(root, entry.name)
    return path if entry.kind == FOLDER else os.path.dirname(path)


def _tell(steps: Iterator[int], total: int, progress: Optional[Progress]) -> None:
    done = 0
    for size in steps:
        done += size
        if progress:
            progress(done, total)


def _write_files(
    folder: str, root: bytes, manifest: Manifest, index: Index, places: List[int]
) -> Iterator[int]:
    """Write the files there, shared among all processors; the size of each when it is done."""
    if not places:
        return
    partial.sweep(os.fsdecode(root))
    making = partial.begin(os.fsdecode(root), ".extracting")

    def write(some: List[int]) -> Iterator[int]:
        path = os.path.join(making.path, str(os.getpid()))
        for entry in map(index.entry, some):
            _write(path, entry, content_of(folder, manifest, entry))
            os.rename(path, os.path.join(root, entry.name))
            yield entry.size

    try:
        tasks = [places[first : first + _TOGETHER] for first in range(0, len(places), _TOGETHER)]
        yield from workers.share(write, tasks, workers.available())
    finally:
        partial.abandon(making)


def _write(path: str, entry: Entry, content: Iterator[bytes]) -> None:
    target = os.open(path, CREATE, 0o600)
    try:
        offset = 0
        for piece in content:
            write_at(target, piece, offset)
            offset += len(piece)
        os.fchmod(target, entry.mode)
        os.utime(target, ns=(entry.mtime_ns, entry.mtime_ns))
    finally:
        os.close(target)
