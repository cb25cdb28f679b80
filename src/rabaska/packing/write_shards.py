"""Files into tar shards, read once: content, checksums and finished index records together."""

import gc
import hashlib
import os
import time
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

from rabaska.node.data import tar_headers
from rabaska.node.data.pack_format import NO_CLASS, Shard
from rabaska.packing.compiled import crc32, joined, records
from rabaska.packing.listing_file import Columns, Draft, columns
from rabaska.packing.read_files import Direct, Large, Read, Reader
from rabaska.packing.shard_borders import Filling, ShardRange, stem
from rabaska.packing.shard_file import TakeLimits, new_shard
from rabaska.packing.tar_batches import CHANGED, SIZE, SMALL, Portion, alone

_OFTEN = 0.05  # seconds between two words about progress
_MOST = 1024  # files that are read straight into a shard before the clock is looked at


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


def write_cut(job: ShardTask, cut: ShardRange) -> Iterator[Packed | Written]:
    """Write the shards of one cut and their records beside them; how it goes on, then the result.

    Runs in a process of its own, which stands in the dataset, where names are short.
    """
    os.chdir(job.source)
    gc.disable()  # nothing here refers to itself, and there is much to look through
    with columns(job.draft) as listed:
        reader = Reader(job.source, follow_links=job.follow_links)
        writer = _Writer(job, cut, listed, reader)
        try:
            for read in reader.portions(CutNames(listed, cut), writer.take):
                yield from writer.add(read)
            yield writer.finished()
        finally:
            writer.close()


class CutNames(Sequence[bytes]):
    """The names of a cut's files, made when they are asked for."""

    def __init__(self, listed: Columns, cut: ShardRange) -> None:
        self._listed, self._begin, self._count = listed, cut.begin, cut.end - cut.begin

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> list[bytes]: ...
    def __getitem__(self, place: int | slice) -> bytes | list[bytes]:
        if isinstance(place, int):
            return self._listed.name(self._begin + range(self._count)[place])
        places = range(self._count)[place]
        return self._listed.name_list(self._begin + places.start, self._begin + places.stop)


def seldom(events: Iterator[Packed | Written]) -> Iterator[Packed | Written]:
    """The same, with words about progress summed up."""
    files = size = 0
    reported = 0.0
    for event in events:
        if isinstance(event, Written):
            yield event
            continue
        files, size = files + event.files, size + event.bytes
        if time.monotonic() - reported > _OFTEN:
            yield Packed(files, size)
            files, size, reported = 0, 0, time.monotonic()
    yield Packed(files, size)


class _Writer:
    """One cut on its way into shards."""

    def __init__(self, job: ShardTask, cut: ShardRange, listed: Columns, reader: Reader) -> None:
        self._job = job
        self._cut = cut
        self._listed = listed
        self._reader = reader
        self._names_at = listed.start(cut.begin)
        self._last_name = b""
        self._newest = 0
        self._parts: list[ShardPart] = []
        self._begin()

    def take(self, done: int, count: int) -> Direct | None:
        """Read some files straight into the shard, after so many of the cut; None if it is none."""
        begin = self._cut.begin + done
        end = min(begin + min(count, _MOST), self._cut.end)
        room = self._filling.room
        if room <= 0:
            return None
        limits = TakeLimits(self._job.begun, room, self._job.size, self._reader.flags)
        at = self._file.size
        taken = self._file.take(self._listed, begin, self._labels_of(begin, end), limits)
        if taken is None:
            return None
        if taken.files:
            last = begin + taken.files
            self._filling.add(self._file.size - at, taken.files)
            self._records.append(taken.records)
            self._facts.update(taken.facts)
            names_at = self._listed.start(last)
            self._names.update(self._listed.names[self._names_at : names_at])
            self._newest = max(self._newest, taken.newest)
            self._names_at, self._last_name = names_at, self._listed.name(last - 1)
        if taken.broken:
            raise self._reader.broken(self._listed.name(begin + taken.files), taken.broken)
        return Direct(taken.files, taken.total)

    def add(self, read: Read) -> Iterator[Packed]:
        """Add files that were just read; a large one is read here, with a word at each piece."""
        if isinstance(read, Direct):
            yield Packed(*read)
            return
        portion = head_of(read) if isinstance(read, Large) else read
        if max(portion.column(CHANGED)) >= self._job.begun:
            self._refuse_changed(portion)
        if isinstance(read, Large):
            yield from self._add_large(read, portion)
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

    def _add_large(self, file: Large, head: Portion) -> Iterator[Packed]:
        """Copy a file in pieces; its record is noted when its crc32 is known."""
        size = file.status.st_size
        pad = tar_headers.padding(size)
        self._make_room(file.name, head.header + size + pad)
        offset = self._file.size
        self._file.add(head.tar)
        crc, rest = 0, b""
        for piece in self._reader.pieces(file):
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
        return self._known_labels(names[0], names[-1], len(names)) or array(
            "i", map(self._label, names)
        )

    def _labels_of(self, begin: int, end: int) -> "array[int]":
        first, last = self._listed.name(begin), self._listed.name(end - 1)
        return self._known_labels(first, last, end - begin) or array(
            "i", map(self._label, self._listed.name_list(begin, end))
        )

    def _known_labels(self, first: bytes, last: bytes, count: int) -> "array[int] | None":
        """Names are in order, so what begins and ends in one folder is all in it."""
        label = self._label(first)
        if label == NO_CLASS or label != self._label(last):
            return None
        return array("i", [label]) * count

    def _label(self, name: bytes) -> int:
        first, inside, _ = name.partition(b"/")
        return self._job.classes[first] if inside else NO_CLASS

    def _refuse_changed(self, portion: Portion) -> None:
        """Refuse what was written since we began.

        A time that lies ahead of us is another clock's: then a second look has to tell.
        """
        now = time.time_ns()
        for file in portion.one_by_one():
            changed = file.column(CHANGED)[0]
            if changed < self._job.begun:
                continue
            # If it was read whole, it is read whole again.
            again = self._reader.alone(file.names[0], max(SMALL, len(file.tar)))
            same = head_of(again) if isinstance(again, Large) else again
            if changed <= now or same != file:
                raise self._reader.changed(file.names[0])

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
        self._file = new_shard(os.path.join(self._job.draft.folder, name))
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
