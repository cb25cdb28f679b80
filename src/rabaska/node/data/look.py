"""A look into a pack without unpacking it: what it holds, one file of it, a part of its tree."""

import os
import zlib
from typing import Iterator, List, Optional

from .blocks import damaged, write_at
from .inspection import open_pack
from .packs import FILE, FOLDER, Entry, Manifest

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_PIECE = 4 * 2**20


class NotInPack(Exception):
    """A pack holds nothing of that name."""


def entries(folder: str, below: bytes = b"") -> Iterator[Entry]:
    """Everything in the pack, or what is called `below` and all that lies in it."""
    _, index = open_pack(folder)
    try:
        for entry in index.entries(0, len(index)):
            if not below or entry.name == below or entry.name.startswith(below + b"/"):
                yield entry
    finally:
        index.close()


def pieces(folder: str, name: bytes) -> Iterator[bytes]:
    """The content of one file, in pieces; DamagedPack at the end if it was not what was packed."""
    manifest, index = open_pack(folder)
    try:
        found = next((entry for entry in index.files() if entry.name == name), None)
    finally:
        index.close()
    if found is None:
        raise NotInPack("there is no file {} in it".format(os.fsdecode(name)))
    yield from _content(folder, manifest, found)


def _content(folder: str, manifest: Manifest, entry: Entry) -> Iterator[bytes]:
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


def extract(folder: str, target: str, below: Optional[List[bytes]] = None) -> int:
    """Write the files called `below`, or all, under `target`; how many. Nothing is overwritten."""
    manifest, index = open_pack(folder)
    try:
        chosen = [
            entry for entry in index.entries(0, len(index))
            if not below or any(_is_in(entry.name, one) for one in below)
        ]  # fmt: skip
    finally:
        index.close()
    if not chosen:
        raise NotInPack("it holds nothing of that name")
    root = os.fsencode(target)
    for entry in chosen:
        inside = entry.name if entry.kind == FOLDER else os.path.dirname(entry.name)
        os.makedirs(os.path.join(root, inside), exist_ok=True)
    for entry in chosen:
        if entry.kind == FILE:
            _write(folder, manifest, entry, os.path.join(root, entry.name))
        elif entry.kind != FOLDER:
            os.symlink(entry.target, os.path.join(root, entry.name))
    return sum(entry.kind == FILE for entry in chosen)


def _is_in(name: bytes, one: bytes) -> bool:
    return name == one or name.startswith(one + b"/")


def _write(folder: str, manifest: Manifest, entry: Entry, path: bytes) -> None:
    descriptor = os.open(path, _CREATE, 0o600)
    try:
        offset = 0
        for piece in _content(folder, manifest, entry):
            write_at(descriptor, piece, offset)
            offset += len(piece)
        os.fchmod(descriptor, entry.mode)
        os.utime(descriptor, ns=(entry.mtime_ns, entry.mtime_ns))
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)
