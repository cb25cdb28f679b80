"""A listing kept on disk, so that memory stays flat for millions of files.

Three columns, one value for each file: its name, where its name ends, and a hash of its name,
which decides where shards may part.
"""

import os
from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import accumulate
from mmap import ACCESS_READ, mmap
from typing import BinaryIO

from rabaska.node.data import pack_tail
from rabaska.node.data.pack_format import IndexLayout
from rabaska.node.data.pack_tail import ListedFolder
from rabaska.packing.listing import Listing, NotPlain
from rabaska.packing.name_columns import Names

NAMES, ENDS, HASHES = "names", "ends", "hashes"

_SOME = 2**16  # names in memory at once


@dataclass(frozen=True)
class Draft:
    """The names of files on disk; links and folders, being fewer, in memory."""

    folder: str
    layout: IndexLayout
    links: tuple[ListedFolder, ...]
    folders: tuple[ListedFolder, ...]

    @property
    def classes(self) -> dict[bytes, int]:
        return pack_tail.classes(self.folders)


def write_draft(listing: Listing, folder: str) -> Draft:
    """Write the names of the listing to `folder`, in one pass."""
    try:
        return _write_draft(listing, listing.walked(), folder)
    except NotPlain:
        return _write_draft(listing, iter(listing), folder)


def _write_draft(listing: Listing, found: Iterator[Names], folder: str) -> Draft:
    files = at = 0
    with ExitStack() as streams:
        names, ends, hashes = (
            streams.enter_context(open(os.path.join(folder, part), "wb", buffering=2**20))
            for part in (NAMES, ENDS, HASHES)
        )
        for some in found:
            places = array("Q", accumulate(some.lengths, initial=at))
            ends.write(memoryview(places)[1:])
            hashes.write(some.hashes)
            names.write(some.text)
            files, at = files + len(some.lengths), places[-1]
        links, folders = sorted(listing.links), sorted(listing.folders)
        for entry in (*links, *folders):
            names.write(entry.name + entry.target)
            at += len(entry.name) + len(entry.target)
    layout = IndexLayout(files, len(links), len(folders), at)
    return Draft(folder, layout, tuple(links), tuple(folders))


@dataclass(frozen=True)
class Columns:
    """The draft's columns, mapped: only the pages that are looked at are in memory."""

    names: mmap
    ends: memoryview
    hashes: memoryview

    def start(self, position: int) -> int:
        """Where the name of file `position` begins."""
        return int(self.ends[position - 1]) if position else 0

    def name(self, position: int) -> bytes:
        return self.names[self.start(position) : self.ends[position]]

    def all_names(self) -> Iterator[bytes]:
        for begin in range(0, len(self.ends), _SOME):
            yield from self.name_list(begin, min(begin + _SOME, len(self.ends)))

    def name_list(self, begin: int, end: int) -> list[bytes]:
        start = self.start(begin)
        text = self.names[start : self.start(end)]
        places = [place - start for place in self.ends[begin:end].tolist()]
        return [text[first:last] for first, last in zip([0, *places], places, strict=False)]


@contextmanager
def columns(draft: Draft) -> Iterator[Columns]:
    with ExitStack() as stack:
        names, ends, hashes = (
            stack.enter_context(_mapped(stack.enter_context(_part(draft, part))))
            for part in (NAMES, ENDS, HASHES)
        )
        yield Columns(
            names,
            stack.enter_context(stack.enter_context(memoryview(ends)).cast("Q")),
            stack.enter_context(stack.enter_context(memoryview(hashes)).cast("I")),
        )


def _part(draft: Draft, part: str) -> BinaryIO:
    return open(os.path.join(draft.folder, part), "rb")


def _mapped(stream: BinaryIO) -> mmap:
    return mmap(stream.fileno(), 0, access=ACCESS_READ)


def drop(draft: Draft, parts: Iterable[str]) -> None:
    for part in parts:
        os.unlink(os.path.join(draft.folder, part))


def tail(draft: Draft) -> tuple[bytes, list[bytes]]:
    """Links and folders as the end of the last shard, and as records of the index."""
    entries = (*draft.links, *draft.folders)
    at = draft.layout.names - sum(len(entry.name) + len(entry.target) for entry in entries)
    return pack_tail.tail(draft.links, draft.folders, at)
