"""Files into tar shards, read once: content, checksums and finished index records together."""

import gc
import hashlib
import os
import time
from array import array
from collections.abc import Iterator
from typing import NamedTuple

from rabaska.node.data.packs import NO_CLASS, Shard
from rabaska.packing import headers
from rabaska.packing.cutting import Cut, stem
from rabaska.packing.draft import Draft, columns
from rabaska.packing.lanes import Begin
from rabaska.packing.reading import Large, Read, Reader
from rabaska.packing.shardfile import ShardFile
from rabaska.packing.speed import crc32, joined, records
from rabaska.packing.taking import CHANGED, SIZE, SMALL, Portion, alone


class Packed(NamedTuple):
    """How much was packed since the last word."""

    files: int
    bytes: int


class Written(NamedTuple):
    """What became of one cut: a shard, or several if its files are larger than was thought."""

    number: int
    shards: list[Shard]
    voucher: str  # changes when a file's name, size, time, mode or inode does
    newest: int  # ns: the latest change of any of its files


class Job(NamedTuple):
    """What every worker needs to know."""

    source: bytes
    made: Draft
    classes: dict[bytes, int]
    end: bytes  # links and folders, for the last shard
    size: int  # that a shard should have
    begun: int  # ns: when packing began
    follow_links: bool


def part_name(cut: int, part: int) -> str:
    return f"part-{cut:05d}-{part:05d}"


def records_name(cut: int, part: int) -> str:
    return f"records-{cut:05d}-{part:05d}"


def write_cut(job: Job, cut: Cut, begin: Begin) -> Iterator[Packed | Written]:
    """Write the shards of one cut and their records beside them; how it goes on, then the result.

    Runs in a process of its own, which stands in the dataset, where names are short.
    """
    os.chdir(job.source)
    gc.disable()  # nothing here refers to itself, and there is much to look through
    with columns(job.made) as listed:
        names = listed.name_list(cut.begin, cut.end)
        writer = _Writer(job, cut, listed.start(cut.begin), begin)
    reader = Reader(job.source, follow_links=job.follow_links)
    try:
        for read in reader.portions(names):
            yield from writer.add(read, reader)
        yield writer.finished(b"".join(names))
    finally:
        writer.close()


class _Writer:
    """One cut on its way into shards."""

    def __init__(self, job: Job, cut: Cut, names_at: int, begin: Begin) -> None:
        self._job = job
        self._cut = cut
        self._digest = begin
        self._names_at = names_at
        self._facts = hashlib.sha256()
        self._newest = 0
        self._last_name = b""
        self._shards: list[Shard] = []
        self._records: list[bytes] = []
        self._file = self._begin()

    def add(self, read: Read, reader: Reader) -> Iterator[Packed]:
        """Add files that were just read; a large one is read here, with a word at each piece."""
        portion = head_of(read) if isinstance(read, Large) else read
        newest = max(portion.column(CHANGED))
        if newest >= self._job.begun:
            self._look_again(portion, reader)
        self._facts.update(portion.facts)
        self._newest = max(self._newest, newest)
        if isinstance(read, Large):
            yield from self._add_large(read, portion, reader)
        else:
            self._add(portion)
            yield Packed(len(portion.names), sum(portion.column(SIZE)))

    def _add(self, portion: Portion) -> None:
        if self._is_full(len(portion.tar)):
            if len(portion.names) > 1:
                for one in portion.one_by_one():
                    self._add(one)
                return
            self._make_room(portion.names[0])
        self._note(portion)
        self._file.add(portion.tar)

    def _add_large(self, file: Large, head: Portion, reader: Reader) -> Iterator[Packed]:
        """Copy a file in pieces; its record is noted when its crc32 is known."""
        size = file.status.st_size
        pad = headers.padding(size)
        if self._is_full(head.header + size + pad):
            self._make_room(file.name)
        offset = self._file.size
        self._file.add(head.tar)
        crc, rest = 0, b""
        for piece in reader.pieces(file):
            whole = len(piece) - len(piece) % headers.BLOCK
            crc = joined(crc, self._file.copy(piece[:whole]), whole)
            rest = bytes(piece[whole:])
            yield Packed(0, len(piece))
        self._file.add(rest + bytes(pad))
        self._note(head._replace(crcs=array("I", [crc32(rest, crc)])), offset)
        yield Packed(1, 0)

    def _is_full(self, length: int) -> bool:
        """Whether so many bytes more would be too many for this shard."""
        return self._file.size + length > 2 * self._job.size

    def _make_room(self, name: bytes) -> None:
        """Begin the next part, unless it would part a sample."""
        if self._file.size and stem(name) != stem(self._last_name):
            self._end_part()
            self._records = []
            self._file = self._begin()

    def _note(self, portion: Portion, offset: int | None = None) -> None:
        """Note the records of files that begin at `offset`, or where the shard ends now."""
        begin = self._file.size if offset is None else offset
        labels = self._labels(portion.names)
        self._records.append(records(portion, labels, begin, self._names_at))
        self._names_at += sum(map(len, portion.names))
        self._last_name = portion.names[-1]

    def _labels(self, names: list[bytes]) -> "array[int]":
        first = self._label(names[0])
        # Names are in order, so what begins and ends in one folder is all in it.
        if first != NO_CLASS and first == self._label(names[-1]):
            return array("i", [first]) * len(names)
        return array("i", map(self._label, names))

    def _label(self, name: bytes) -> int:
        first, inside, _ = name.partition(b"/")
        return self._job.classes[first] if inside else NO_CLASS

    def _look_again(self, portion: Portion, reader: Reader) -> None:
        """Refuse what was written since we began.

        A time that lies ahead of us is another clock's: then a second look has to tell.
        """
        now = time.time_ns()
        for one in portion.one_by_one():
            changed = one.column(CHANGED)[0]
            if changed < self._job.begun:
                continue
            # If it was read whole, it is read whole again.
            again = reader.alone(one.names[0], max(SMALL, len(one.tar)))
            same = head_of(again) if isinstance(again, Large) else again
            if changed <= now or same != one:
                raise reader.changed(one.names[0])

    def finished(self, names: bytes) -> Written:
        voucher = hashlib.sha256(self._facts.digest() + names)
        if self._cut.last:
            self._file.add(self._job.end)
            voucher.update(self._job.end)
        self._end_part()
        return Written(self._cut.number, self._shards, voucher.hexdigest(), self._newest)

    def close(self) -> None:
        self._file.close()

    def _begin(self) -> ShardFile:
        name = part_name(self._cut.number, len(self._shards))
        return ShardFile(os.path.join(self._job.made.folder, name), self._digest())

    def _end_part(self) -> None:
        self._file.add(headers.END)
        name = records_name(self._cut.number, len(self._shards))
        with open(os.path.join(self._job.made.folder, name), "wb") as stream:
            stream.writelines(self._records)
        self._shards.append(self._file.finished())
        self._file.close()


def head_of(file: Large) -> Portion:
    """A large file without its content."""
    whole = alone(file.name, file.status, b"")
    return whole._replace(tar=whole.tar[: whole.header])
