"""Files into tar shards, read once: content, checksums and finished index records together.

Files are taken many at a time, as columns: a line of Python for each file would cost as much as
reading a small one.
"""

import gc
import hashlib
import os
import stat
import time
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, repeat
from operator import attrgetter
from typing import NamedTuple
from zlib import crc32

from rabaska.errors import DatasetError
from rabaska.node.data.packs import FILE, NO_CLASS, RECORD, Shard
from rabaska.packing import headers
from rabaska.packing.cutting import Cut, stem
from rabaska.packing.draft import Draft, columns
from rabaska.packing.headers import BLOCK
from rabaska.packing.listing import PERMISSIONS
from rabaska.packing.reading import LARGE, Contents, Reader
from rabaska.packing.shardfile import ShardFile

_FLUSH = 2**20
# What vouches for a file: it changes when the content does.
FACTS = attrgetter("st_size", "st_mtime_ns", "st_mode", "st_ino", "st_ctime_ns")
_PADS = [bytes(-size % BLOCK) for size in range(BLOCK)]
_LARGEST_NUMBER = 2**63 - 1


def as_bytes(rows: Iterable[tuple[int, ...]]) -> bytes:
    """Facts about files in a form that can be digested."""
    numbers = list(chain.from_iterable(rows))
    try:
        return array("q", numbers).tobytes()
    except OverflowError:  # some file systems number their files beyond that
        return array("q", [number & _LARGEST_NUMBER for number in numbers]).tobytes()


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


def write_cut(job: Job, cut: Cut) -> Iterator[Packed | Written]:
    """Write the shards of one cut and their records beside them; how it goes on, then the result.

    Runs in a process of its own, which stands in the dataset, where names are short.
    """
    os.chdir(job.source)
    gc.disable()  # nothing here refers to itself, and there is much to look through
    with columns(job.made) as listed:
        names = listed.name_list(cut.begin, cut.end)
        writer = _Writer(job, cut, listed.start(cut.begin))
    reader = Reader(job.source, follow_links=job.follow_links)
    try:
        for group, contents in reader.groups(names):
            yield writer.add(group, contents, reader)
        yield writer.finished(b"".join(names))
    finally:
        reader.close()
        writer.close()


class _Group:
    """Files read together, as columns."""

    def __init__(self, names: list[bytes], read: Contents) -> None:
        self.names = names
        self.read = read
        statuses, self.contents = zip(*read, strict=True)
        rows = list(map(FACTS, statuses))
        self.facts = as_bytes(rows)
        sizes, times, modes, _, self.changed = zip(*rows, strict=True)
        self.sizes: list[int] = list(sizes)
        self.times: tuple[int, ...] = times
        self.seconds = [time // 10**9 for time in times]
        self.modes = [mode & PERMISSIONS for mode in modes]
        self.bytes = sum(sizes)
        self.are_files = {stat.S_IFMT(mode) for mode in set(modes)} == {stat.S_IFREG}
        self.are_small = max(sizes) < LARGE

    @property
    def length(self) -> int:
        """Of the tar they make, if all headers are plain."""
        return sum([BLOCK + size + -size % BLOCK for size in self.sizes])

    @property
    def are_plain(self) -> bool:
        return (
            min(self.seconds) >= 0 and max(self.seconds) <= headers.LATEST_TIME
            and all(map(headers.is_plain, self.names))
        )  # fmt: skip


class _Writer:
    """One cut on its way into shards."""

    def __init__(self, job: Job, cut: Cut, names_at: int) -> None:
        self._job = job
        self._cut = cut
        self._names_at = names_at
        self._facts = hashlib.sha256()
        self._newest = 0
        self._last_name = b""
        self._shards: list[Shard] = []
        self._records: list[bytes] = []
        self._file = self._begin()

    def add(self, names: list[bytes], contents: Contents, reader: Reader) -> Packed:
        """Add files that were just read; the large ones are read here."""
        group = _Group(names, contents)
        self._facts.update(group.facts)
        self._newest = max(self._newest, *group.changed)
        if not group.are_files:
            raise self._changed_among(group)
        if self._newest >= self._job.begun:
            self._look_again(group, reader)
        room = 2 * self._job.size - self._file.size
        if group.are_small and group.are_plain and group.length <= room:
            self._add_many(group)
        else:
            for name, (status, content) in zip(names, contents, strict=True):
                self._add_one(name, status, content, reader)
        if self._file.waiting >= _FLUSH:
            self._file.flush()
        return Packed(len(names), group.bytes)

    def _add_many(self, group: "_Group") -> None:
        """Small files with ordinary names, all at once: this is where the time goes."""
        if list(map(len, group.contents)) != group.sizes:
            raise self._changed_among(group)
        pads = map(_PADS.__getitem__, [size % BLOCK for size in group.sizes])
        parts = headers.plain_headers(group.names, group.sizes, group.modes, group.seconds)
        for header, content, pad in zip(parts, group.contents, pads, strict=True):
            self._file.pieces += header
            self._file.pieces += (content, pad)
        self._note_records(group, BLOCK, list(map(crc32, group.contents)))
        self._file.size += group.length

    def _add_one(self, name: bytes, status: os.stat_result, content: bytes, reader: Reader) -> None:
        group = _Group([name], [(status, content)])
        full = self._file.size + group.length > 2 * self._job.size
        if full and self._file.size and stem(name) != stem(self._last_name):
            self._next_part()
        size, mode = group.sizes[0], group.modes[0]
        header = headers.header(name, size=size, mode=mode, mtime=group.seconds[0])
        self._file.pieces.append(header)
        if size < LARGE:
            if len(content) != size:
                raise self._changed(name)
            crc = crc32(content)
            self._file.pieces.append(content)
        else:
            crc = self._copy_large(name, status, reader)
        self._file.pieces.append(_PADS[size % BLOCK])
        self._note_records(group, len(header), [crc])
        self._file.size += len(header) + size + -size % BLOCK

    def _note_records(self, group: "_Group", header: int, crcs: list[int]) -> None:
        """Records of files that follow one another, each after a header of so many bytes."""
        lengths = list(map(len, group.names))
        labels = map(self._label, group.names)
        steps = (header + size + -size % BLOCK for size in group.sizes[:-1])
        offsets = accumulate(steps, initial=self._file.size + header)
        places = accumulate(lengths, initial=self._names_at)
        zeros, files = repeat(0), repeat(FILE)
        self._records += map(
            RECORD.pack, offsets, group.sizes, group.times, places, lengths, zeros, zeros, crcs,
            group.modes, files, labels, zeros,
        )  # fmt: skip
        self._names_at += sum(lengths)
        self._last_name = group.names[-1]

    def _label(self, name: bytes) -> int:
        first, inside, _ = name.partition(b"/")
        return self._job.classes[first] if inside else NO_CLASS

    def _look_again(self, group: "_Group", reader: Reader) -> None:
        """Refuse what was written since we began.

        A time that lies ahead of us is another clock's: then a second look has to tell.
        """
        now = time.time_ns()
        for name, (status, content) in zip(group.names, group.read, strict=True):
            if status.st_ctime_ns < self._job.begun:
                continue
            if status.st_ctime_ns <= now:
                raise self._changed(name)
            again, same = reader.read(name)
            if _version(again) != _version(status) or same != content:
                raise self._changed(name)

    def _changed_among(self, group: "_Group") -> DatasetError:
        """The error for the first file of the group that is not as it was."""
        for name, (status, content) in zip(group.names, group.read, strict=True):
            small = status.st_size < LARGE
            if not stat.S_ISREG(status.st_mode) or (small and len(content) != status.st_size):
                return self._changed(name)
        raise AssertionError("none of them changed")

    def finished(self, names: bytes) -> Written:
        voucher = hashlib.sha256(self._facts.digest() + names)
        if self._cut.last:
            self._file.pieces.append(self._job.end)
            voucher.update(self._job.end)
        self._end_part()
        return Written(self._cut.number, self._shards, voucher.hexdigest(), self._newest)

    def close(self) -> None:
        self._file.close()

    def _begin(self) -> ShardFile:
        name = part_name(self._cut.number, len(self._shards))
        return ShardFile(os.path.join(self._job.made.folder, name))

    def _next_part(self) -> None:
        self._end_part()
        self._records = []
        self._file = self._begin()

    def _end_part(self) -> None:
        self._file.pieces.append(headers.END)
        name = records_name(self._cut.number, len(self._shards))
        with open(os.path.join(self._job.made.folder, name), "wb") as stream:
            stream.write(b"".join(self._records))
        self._shards.append(self._file.finished())
        self._file.close()

    def _copy_large(self, name: bytes, listed: os.stat_result, reader: Reader) -> int:
        """Copy a file in pieces and return its crc32; it must stay as it is meanwhile."""
        self._file.flush()
        crc = read = 0
        descriptor = reader.open(name)
        try:
            while read <= listed.st_size:
                piece = reader.piece(name, descriptor, _FLUSH)
                if not piece:
                    break
                crc, read = crc32(piece, crc), read + len(piece)
                self._file.write(piece)
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if read != listed.st_size or _version(status) != _version(listed):
            raise self._changed(name)
        return crc

    def _changed(self, name: bytes) -> DatasetError:
        return DatasetError(
            f"{os.fsdecode(os.path.join(self._job.source, name))} changed while it was packed",
            why="its size or its time of change is newer than the beginning of the work",
            hint="run the command again when no program writes into the folder",
        )


def _version(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns
