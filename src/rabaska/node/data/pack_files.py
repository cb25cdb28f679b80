"""Files of a pack: listed, read, and extracted into a folder that may hold other files."""

import errno
import os
import zlib
from typing import Callable, Iterator, List, Optional, Sequence

from .. import partial_folder
from . import worker_pool
from .blocks import damaged, write_at
from .pack_format import FOLDER, LINK, Entry, Index, Manifest
from .pack_safety import open_pack
from .write_files import CREATE

_PIECE = 4 * 2**20


class NotInPack(Exception):
    """A pack holds nothing of that name."""


def entries(folder: str, below: bytes = b"") -> Iterator[Entry]:
    """Everything in the pack, or what is called `below` and all that lies in it."""
    _, index = open_pack(folder)
    is_there = not below
    try:
        for entry in index.entries(0, len(index)):
            if not below or entry.name == below or entry.name.startswith(below + b"/"):
                is_there = True
                yield entry
    finally:
        index.close()
    if not is_there:
        raise NotInPack("nothing in it is called {}".format(os.fsdecode(below)))


def pieces(folder: str, name: bytes) -> Iterator[bytes]:
    """The content of one file, in pieces; BadPack at the end if it was not what was packed."""
    manifest, index = open_pack(folder)
    try:
        entry = next((entry for entry in index.files() if entry.name == name), None)
    finally:
        index.close()
    if entry is None:
        raise NotInPack("there is no file {} in it".format(os.fsdecode(name)))
    yield from content_of(folder, manifest, entry)


def content_of(folder: str, manifest: Manifest, entry: Entry) -> Iterator[bytes]:
    """The same of an entry of an index."""
    shard = manifest.shards[entry.shard].name
    crc = done = 0
    source = os.open(os.path.join(folder, shard), os.O_RDONLY)
    try:
        while done < entry.size:
            piece = os.pread(source, min(_PIECE, entry.size - done), entry.offset + done)
            if not piece:
                raise damaged(folder, shard)
            crc, done = zlib.crc32(piece, crc), done + len(piece)
            yield piece
    finally:
        os.close(source)
    if crc != entry.crc:
        raise damaged(folder, shard)


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
        _report(steps, sum(index.entry(place).size for place in files), progress)
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
    requested, present, chosen = set(below), set(), []
    for place, entry in enumerate(index.entries(0, len(index))):
        name = entry.name
        while name and name not in requested:
            name = os.path.dirname(name)
        if name:
            chosen.append(place)
            present.add(name)
    for name in sorted(requested - present):
        raise NotInPack("nothing in it is called {}".format(os.fsdecode(name)))
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
        status = os.lstat(path)
        same = (status.st_size, status.st_mtime_ns) == (entry.size, entry.mtime_ns)
    if not same:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fsdecode(path))
    return True


def _folder(root: bytes, entry: Entry) -> bytes:
    path = os.path.join(root, entry.name)
    return path if entry.kind == FOLDER else os.path.dirname(path)


def _report(steps: Iterator[int], total: int, progress: Optional[Progress]) -> None:
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
    partial_folder.sweep(os.fsdecode(root))
    making = partial_folder.begin(os.fsdecode(root), ".extracting")

    def write(some: List[int]) -> Iterator[int]:
        path = os.path.join(making.path, str(os.getpid()))
        for entry in map(index.entry, some):
            _write(path, entry, content_of(folder, manifest, entry))
            os.rename(path, os.path.join(root, entry.name))
            yield entry.size

    try:
        tasks = [places[first : first + _TOGETHER] for first in range(0, len(places), _TOGETHER)]
        yield from worker_pool.share(write, tasks, worker_pool.available())
    finally:
        partial_folder.abandon(making)


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
