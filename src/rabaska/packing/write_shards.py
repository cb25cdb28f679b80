"""Files into tar shards, read once: content, checksums and finished index records together."""

import gc
import hashlib
import os
import time
from array import array
from collections.abc import Iterator
from typing import NamedTuple

from rabaska.node.data import tar_headers
from rabaska.node.data.pack_format import BLOCK, NO_CLASS, Shard
from rabaska.packing.compiled import crc32, joined, records
from rabaska.packing.digests import Begin, Digest
from rabaska.packing.listing_file import Draft, columns
from rabaska.packing.read_files import Large, Read, Reader
from rabaska.packing.shard_borders import Filling, ShardRange, stem
from rabaska.packing.tar_batches import CHANGED, SIZE, SMALL, Portion, alone

_FLUSH = 2**17


class ShardFile:
    """What is added comes in whole blocks of tar."""

    def __init__(self, path: str, digest: Digest) -> None:
        self.size = 0  # with what waits to be written
        self._waiting: list[bytes | memoryview] = []
        self._path = path
        self._stream = open(path, "wb", buffering=0)
        self._digest = digest
        self._crcs: list[int] = []
        self._written = 0

    def add(self, piece: bytes | memoryview) -> None:
        self._waiting.append(piece)
        self.size += len(piece)
        if self.size - self._written >= _FLUSH:
            self._flush()

    def copy(self, piece: memoryview) -> int:
        """Add what its owner will overwrite in a while, and return its crc32."""
        self._flush()
        self.size += len(piece)
        crc = 0
        for part in self._parts(piece):
            new = crc32(part)
            self._crcs[-1] = joined(self._crcs[-1], new, len(part))
            crc = joined(crc, new, len(part))
            self._write(part)
        return crc

    def finished(self) -> Shard:
        """What it became; its name is that of the file for now."""
        self._flush()
        return Shard(
            os.path.basename(self._path), self._written, self._digest.hexdigest(), self._crcs
        )

    def close(self) -> None:
        self._stream.close()

    def _flush(self) -> None:
        if not self._waiting:
            return
        first, *others = self._waiting
        piece = memoryview(b"".join(self._waiting) if others else first)
        self._waiting.clear()
        for part in self._parts(piece):
            self._crcs[-1] = crc32(part, self._crcs[-1])
            self._write(part)

    def _parts(self, piece: memoryview) -> Iterator[memoryview]:
        """The piece, cut where a block ends; a crc32 for each block it falls into is begun."""
        while piece:
            room = BLOCK - self._written % BLOCK
            if room == BLOCK:
                self._crcs.append(0)
            yield piece[:room]
            piece = piece[room:]

    def _write(self, part: memoryview) -> None:
        self._digest.update(part)
        self._written += len(part)
        while part:
            part = part[self._stream.write(part) :]


class Packed(NamedTuple):
    """How much was packed since the last word."""

    files: int
    bytes: int


class ShardPart(NamedTuple):
    """A shard, and the fingerprint of its files."""

    shard: Shard
    fingerprint: str  # changes when the name, size, time, mode or inode of a file in it does
    newest: int  # ns: the latest change of any of its files


class Written(NamedTuple):
    """What became of one cut: a shard, or several if its files are larger than was thought."""

    number: int
    parts: list[ShardPart]


class ShardTask(NamedTuple):
    """What every worker needs to know."""

    source: bytes
    draft: Draft
    classes: dict[bytes, int]
    end: bytes  # links and folders, for the last shard
    size: int  # that a shard should have
    begun: int  # ns: when packing began
    follow_links: bool


def part_name(cut: int, part: int) -> str:
    return f"part-{cut:05d}-{part:05d}"


def records_name(cut: int, part: int) -> str:
    return f"records-{cut:05d}-{part:05d}"


def write_cut(job: ShardTask, cut: ShardRange, begin: Begin) -> Iterator[Packed | Written]:
    """Write the shards of one cut and their records beside them; how it goes on, then the result.

    Runs in a process of its own, which stands in the dataset, where names are short.
    """
    os.chdir(job.source)
    gc.disable()  # nothing here refers to itself, and there is much to look through
    with columns(job.draft) as listed:
        names = listed.name_list(cut.begin, cut.end)
        writer = _Writer(job, cut, listed.start(cut.begin), begin)
    reader = Reader(job.source, follow_links=job.follow_links)
    try:
        for read in reader.portions(names):
            yield from writer.add(read, reader)
        yield writer.finished()
    finally:
        writer.close()


class _Writer:
    """One cut on its way into shards."""

    def __init__(self, job: ShardTask, cut: ShardRange, names_at: int, begin: Begin) -> None:
        self._job = job
        self._cut = cut
        self._digest = begin
        self._names_at = names_at
        self._last_name = b""
        self._newest = 0
        self._parts: list[ShardPart] = []
        self._begin()

    def add(self, read: Read, reader: Reader) -> Iterator[Packed]:
        """Add files that were just read; a large one is read here, with a word at each piece."""
        portion = head_of(read) if isinstance(read, Large) else read
        if max(portion.column(CHANGED)) >= self._job.begun:
            self._refuse_changed(portion, reader)
        if isinstance(read, Large):
            yield from self._add_large(read, portion, reader)
        else:
            self._add(portion)
            yield Packed(len(portion.names), sum(portion.column(SIZE)))

    def _add(self, portion: Portion) -> None:
        if len(portion.names) > 1 and not self._holds(portion):
            for file in portion.one_by_one():
                self._add(file)
            return
        self._make_room(portion.names[0], len(portion.tar), len(portion.names))
        self._note(portion)
        self._file.add(portion.tar)

    def _holds(self, portion: Portion) -> bool:
        """Whether many files fit into this shard, whichever of them is the last."""
        largest = portion.header + max(portion.column(SIZE)) + tar_headers.BLOCK
        return largest < self._job.size and not self._filling.is_full(len(portion.tar))

    def _add_large(self, file: Large, head: Portion, reader: Reader) -> Iterator[Packed]:
        """Copy a file in pieces; its record is noted when its crc32 is known."""
        size = file.status.st_size
        pad = tar_headers.padding(size)
        self._make_room(file.name, head.header + size + pad)
        offset = self._file.size
        self._file.add(head.tar)
        crc, rest = 0, b""
        for piece in reader.pieces(file):
            whole = len(piece) - len(piece) % tar_headers.BLOCK
            crc = joined(crc, self._file.copy(piece[:whole]), whole)
            rest = bytes(piece[whole:])
            yield Packed(0, len(piece))
        self._file.add(rest + bytes(pad))
        self._note(head._replace(crcs=array("I", [crc32(rest, crc)])), offset)
        yield Packed(1, 0)

    def _make_room(self, name: bytes, length: int, files: int = 1) -> None:
        """Begin the next part if so many bytes need one, unless it would part a sample."""
        if self._filling.is_full(length) and stem(name) != stem(self._last_name):
            self._end_part()
            self._begin()
        self._filling.add(length, files)

    def _note(self, portion: Portion, offset: int | None = None) -> None:
        """Note the records of files that begin at `offset`, or where the shard ends now."""
        begin = self._file.size if offset is None else offset
        labels = self._labels(portion.names)
        self._records.append(records(portion, labels, begin, self._names_at))
        self._facts.update(portion.facts)
        self._names.update(b"".join(portion.names))
        self._newest = max([self._newest, *portion.column(CHANGED)])
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

    def _refuse_changed(self, portion: Portion, reader: Reader) -> None:
        """Refuse what was written since we began.

        A time that lies ahead of us is another clock's: then a second look has to tell.
        """
        now = time.time_ns()
        for file in portion.one_by_one():
            changed = file.column(CHANGED)[0]
            if changed < self._job.begun:
                continue
            # If it was read whole, it is read whole again.
            again = reader.alone(file.names[0], max(SMALL, len(file.tar)))
            same = head_of(again) if isinstance(again, Large) else again
            if changed <= now or same != file:
                raise reader.changed(file.names[0])

    def finished(self) -> Written:
        end = self._job.end if self._cut.last else b""
        if end and self._filling.is_full(len(end)):
            self._end_part()
            self._begin()
        self._file.add(end)
        self._end_part(end)
        return Written(self._cut.number, self._parts)

    def close(self) -> None:
        self._file.close()

    def _begin(self) -> None:
        name = part_name(self._cut.number, len(self._parts))
        self._file = ShardFile(os.path.join(self._job.draft.folder, name), self._digest())
        self._filling = Filling(self._job.size)
        self._records: list[bytes] = []
        self._facts, self._names = hashlib.sha256(), hashlib.sha256()
        self._newest = 0

    def _end_part(self, end: bytes = b"") -> None:
        """End the shard; `end` is what it holds besides files."""
        self._file.add(tar_headers.END)
        name = records_name(self._cut.number, len(self._parts))
        with open(os.path.join(self._job.draft.folder, name), "wb") as stream:
            stream.writelines(self._records)
        fingerprint = fingerprint_of(self._facts.digest(), self._names.digest(), end)
        self._parts.append(ShardPart(self._file.finished(), fingerprint, self._newest))
        self._file.close()


def fingerprint_of(facts: bytes, names: bytes, end: bytes) -> str:
    """Of a shard: digests of its files' facts and names, and its links and folders."""
    return hashlib.sha256(facts + names + end).hexdigest()


def head_of(file: Large) -> Portion:
    """A large file without its content."""
    portion = alone(file.name, file.status, b"")
    return portion._replace(tar=portion.tar[: portion.header])
