"""A look into a pack without unpacking it: what it holds, and the content of one file."""

import os
import zlib
from typing import Iterator

from .blocks import damaged
from .inspection import open_pack
from .packs import Entry, Manifest

_PIECE = 4 * 2**20


class NotInPack(Exception):
    """A pack holds nothing of that name."""


def entries(folder: str, below: bytes = b"") -> Iterator[Entry]:
    """Everything in the pack, or what is called `below` and all that lies in it."""
    _, index = open_pack(folder)
    found = not below
    try:
        for entry in index.entries(0, len(index)):
            if not below or entry.name == below or entry.name.startswith(below + b"/"):
                found = True
                yield entry
    finally:
        index.close()
    if not found:
        raise NotInPack("it holds nothing called {}".format(os.fsdecode(below)))


def pieces(folder: str, name: bytes) -> Iterator[bytes]:
    """The content of one file, in pieces; DamagedPack at the end if it was not what was packed."""
    manifest, index = open_pack(folder)
    try:
        found = next((entry for entry in index.files() if entry.name == name), None)
    finally:
        index.close()
    if found is None:
        raise NotInPack("there is no file {} in it".format(os.fsdecode(name)))
    yield from content_of(folder, manifest, found)


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
