"""A listing kept on disk in the form of the index, so that memory stays flat for millions of files.

Each record already holds where its content would lie if all shards were one long tar; cutting that
into shards only needs a search, and every worker reads just the records of its own shard.
"""

import hashlib
import mmap
import os
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from rabaska.node.packs import FILE, FOLDER, LINK, NO_CLASS, RECORD, Layout
from rabaska.packing import headers
from rabaska.packing.listing import Found

RECORDS, NAMES = "records", "names"
_FLUSH = 2**20
_VOUCHER = struct.Struct("<QqqQIBI")


@dataclass(frozen=True)
class Draft:
    """The files of a listing on disk; its links and folders, being fewer, in memory."""

    folder: str
    layout: Layout
    bytes: int  # of all contents
    length: int  # of the one long tar, links and folders left out
    links: tuple[Found, ...]
    folders: tuple[Found, ...]
    fingerprint: str  # of names, sizes, times, inodes and modes
    newest: int  # ns: the latest change of any entry


class Cut(NamedTuple):
    """The records of one shard, and where it begins in the one long tar."""

    number: int
    begin: int
    end: int
    start: int


def draft(found: Iterable[Found], folder: str) -> Draft:
    """Write the listing to `folder`, in one pass."""
    links: list[Found] = []
    folders: list[Found] = []
    digest = hashlib.sha256()
    files = total = at = length = newest = 0
    with _Spool(folder, RECORDS) as records, _Spool(folder, NAMES) as names:
        for entry in found:
            digest.update(_voucher(entry))
            newest = max(newest, entry.ctime_ns)
            if entry.kind != FILE:
                (links if entry.kind == LINK else folders).append(entry)
                continue
            offset = length + _header_size(entry)
            records.add(_record(entry, at, offset=offset))
            names.add(entry.name)
            at += len(entry.name)
            length = offset + entry.size + headers.padding(entry.size)
            files, total = files + 1, total + entry.size
        links.sort()
        folders.sort()
        for entry in (*links, *folders):
            names.add(entry.name + entry.target)
            at += len(entry.name) + len(entry.target)
    layout = Layout(files, len(links), len(folders), at)
    return Draft(
        folder, layout, total, length, tuple(links), tuple(folders), digest.hexdigest(), newest
    )


def classes(folders: Iterable[Found]) -> list[bytes]:
    """The first folders: what image datasets call their classes."""
    return [folder.name for folder in folders if b"/" not in folder.name]


def tail(made: Draft, last_shard: int) -> tuple[bytes, bytes]:
    """Links and folders as the end of the last shard, and as records of the index.

    Folders come last, so that `tar xf` sets their times after it wrote what is in them.
    """
    place = {name: position for position, name in enumerate(classes(made.folders))}
    at = made.layout.names - sum(
        len(entry.name) + len(entry.target) for entry in (*made.links, *made.folders)
    )
    blocks, records = [], []
    for entry in (*made.links, *made.folders):
        blocks.append(_header(entry))
        label = place.get(entry.name.partition(b"/")[0], NO_CLASS)
        records.append(_record(entry, at, shard=last_shard, label=label))
        at += len(entry.name) + len(entry.target)
    return b"".join(blocks), b"".join(records)


def cuts(made: Draft, shards: int) -> list[Cut]:
    """About equal shards; where they part depends on the listing alone."""
    with mapped(made, RECORDS) as records:

        def offset(position: int) -> int:
            return int(RECORD.unpack_from(records, position * RECORD.size)[0])

        every = range(made.layout.files)
        goals = (made.length * number // shards for number in range(1, shards))
        begins = sorted({0, *(bisect_left(every, goal, key=offset) for goal in goals)})
        begins = [begin for begin in begins if begin < made.layout.files]
        ends = [*begins[1:], made.layout.files]
        return [
            Cut(number, begin, end, _end_of(records, begin - 1) if begin else 0)
            for number, (begin, end) in enumerate(zip(begins, ends, strict=True))
        ]


def _end_of(records: mmap.mmap, position: int) -> int:
    offset, size = RECORD.unpack_from(records, position * RECORD.size)[:2]
    return int(offset + size + headers.padding(size))


@contextmanager
def mapped(made: Draft, part: str) -> Iterator[mmap.mmap]:
    with (
        open(os.path.join(made.folder, part), "rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        yield content


def _voucher(entry: Found) -> bytes:
    """Everything that changes when the content does."""
    return (
        _VOUCHER.pack(
            entry.size, entry.mtime_ns, entry.ctime_ns, entry.inode, entry.mode, entry.kind,
            len(entry.name),
        )
        + entry.name + entry.target + b"\0"
    )  # fmt: skip


def _record(
    entry: Found, at: int, *, offset: int = 0, shard: int = 0, label: int = NO_CLASS
) -> bytes:
    return RECORD.pack(
        offset, entry.size, entry.mtime_ns, at, len(entry.name), len(entry.target), shard, 0,
        entry.mode, entry.kind, label, 0,
    )  # fmt: skip


def _header_size(entry: Found) -> int:
    return headers.header_size(entry.name, size=entry.size, mtime=entry.mtime_ns // 10**9)


def _header(entry: Found) -> bytes:
    folder = entry.kind == FOLDER
    return headers.header(
        entry.name + (b"/" if folder else b""),
        kind=headers.FOLDER if folder else headers.LINK,
        mode=entry.mode,
        mtime=entry.mtime_ns // 10**9,
        target=entry.target,
    )


class _Spool:
    """A file written in large pieces."""

    def __init__(self, folder: str, name: str) -> None:
        self._stream = open(os.path.join(folder, name), "wb", buffering=0)
        self._pieces: list[bytes] = []
        self._waiting = 0

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._waiting += len(piece)
        if self._waiting >= _FLUSH:
            self.flush()

    def flush(self) -> None:
        rest = memoryview(b"".join(self._pieces))
        while rest:
            rest = rest[self._stream.write(rest) :]
        self._pieces, self._waiting = [], 0

    def __enter__(self) -> "_Spool":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.flush()
        finally:
            self._stream.close()
