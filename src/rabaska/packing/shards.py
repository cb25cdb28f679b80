"""Files into one tar shard, read once: content, checksums and finished index records together."""

import hashlib
import os
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from rabaska.errors import DatasetError
from rabaska.node.packs import BLOCK, NO_CLASS, RECORD, Shard, shard_name
from rabaska.packing import headers
from rabaska.packing.draft import NAMES, RECORDS, Cut, Draft, mapped
from rabaska.packing.listing import unreadable

_PIECE = 2**20
# A file may have become a link, or a pipe that would block, since it was listed.
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW
_OPEN_FOLLOWING = os.O_RDONLY | os.O_NONBLOCK


class Packed(NamedTuple):
    """How much was packed since the last word."""

    files: int
    bytes: int


class Job(NamedTuple):
    """What every worker needs to know."""

    source: bytes
    made: Draft
    classes: dict[bytes, int]
    end: bytes  # links and folders, for the last shard
    shards: int
    follow_links: bool


def records_name(number: int) -> str:
    return f"records-{number:05d}"


def write_shard(job: Job, cut: Cut) -> Iterator[Packed | tuple[int, Shard]]:
    """Write one shard and its records beside it; how it goes on, and at last what it became."""
    with _ShardFile(os.path.join(job.made.folder, shard_name(cut.number))) as shard:
        records = bytearray()
        files = size = 0
        for record, name in _planned(job.made, cut):
            header = headers.header(name, size=record[1], mode=record[8], mtime=record[2] // 10**9)
            shard.add(header)
            crc = _copy(job, name, record, shard)
            records += _finished(record, cut, crc, _label(name, job.classes))
            files, size = files + 1, size + record[1]
            if shard.waiting >= _PIECE:
                shard.flush()
                yield Packed(files, size)
                files = size = 0
        if cut.number == job.shards - 1:
            shard.add(job.end)
        shard.add(headers.END)
        shard.flush()
        _write_records(job.made, cut, records)
        yield Packed(files, size)
        yield cut.number, shard.finished(shard_name(cut.number))


def _planned(made: Draft, cut: Cut) -> Iterator[tuple[tuple[int, ...], bytes]]:
    with mapped(made, RECORDS) as records, mapped(made, NAMES) as names:
        for position in range(cut.begin, cut.end):
            record = RECORD.unpack_from(records, position * RECORD.size)
            yield record, names[record[3] : record[3] + record[4]]


def _finished(record: tuple[int, ...], cut: Cut, crc: int, label: int) -> bytes:
    offset, size, mtime, at, length, target, _, _, mode, kind, _, _ = record
    return RECORD.pack(
        offset - cut.start, size, mtime, at, length, target, cut.number, crc, mode, kind, label, 0
    )


def _label(name: bytes, classes: dict[bytes, int]) -> int:
    first, inside, _ = name.partition(b"/")
    return classes[first] if inside else NO_CLASS


def _write_records(made: Draft, cut: Cut, records: bytearray) -> None:
    with open(os.path.join(made.folder, records_name(cut.number)), "wb") as stream:
        stream.write(records)


def _copy(job: Job, name: bytes, record: tuple[int, ...], shard: "_ShardFile") -> int:
    """Add one file's content to the shard and return its crc32; it must be as it was listed."""
    path = job.source + b"/" + name
    try:
        descriptor = os.open(path, _OPEN_FOLLOWING if job.follow_links else _OPEN)
    except OSError as problem:
        raise unreadable(os.fsdecode(path), problem) from problem
    try:
        crc, size = _content(path, descriptor, record[1], shard)
        # One byte more was asked for than was listed, so a file that grew shows itself.
        if size != record[1] or os.fstat(descriptor).st_mtime_ns != record[2]:
            raise _changed(path)
    finally:
        os.close(descriptor)
    shard.add(bytes(headers.padding(size)))
    return crc


def _content(path: bytes, descriptor: int, size: int, shard: "_ShardFile") -> tuple[int, int]:
    """Add what the file holds, up to one byte more than `size`; its crc32 and its length."""
    crc = read = 0
    while read <= size:
        wanted = min(size + 1 - read, _PIECE)
        try:
            piece = os.read(descriptor, wanted)
        except OSError as problem:
            raise unreadable(os.fsdecode(path), problem) from problem
        crc, read = zlib.crc32(piece, crc), read + len(piece)
        shard.add(piece)
        if shard.waiting >= _PIECE and size >= _PIECE:
            shard.flush()
        # Fewer bytes than wanted is the end, which saves small files a second read.
        if not piece or (len(piece) < wanted and read == size):
            break
    return crc, read


def _changed(path: bytes) -> DatasetError:
    return DatasetError(
        f"{os.fsdecode(path)} changed while it was packed",
        why="its size or its time of change is no longer what it was when it was listed",
        hint="run the command again when no program writes into the folder",
    )


class _ShardFile:
    """A shard being written: large writes, one digest of it all, a crc32 for each block."""

    def __init__(self, path: str) -> None:
        self._stream = open(path, "wb", buffering=0)
        self._digest = hashlib.sha256()
        self._pieces: list[bytes] = []
        self._crcs: list[int] = []
        self._size = 0
        self.waiting = 0

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.waiting += len(piece)

    def flush(self) -> None:
        data = memoryview(b"".join(self._pieces))
        self._pieces, self.waiting = [], 0
        self._digest.update(data)
        self._check_blocks(data)
        while data:
            data = data[self._stream.write(data) :]

    def _check_blocks(self, data: memoryview) -> None:
        while data:
            room = BLOCK - self._size % BLOCK
            if room == BLOCK:
                self._crcs.append(0)
            part = data[:room]
            self._crcs[-1] = zlib.crc32(part, self._crcs[-1])
            self._size += len(part)
            data = data[room:]

    def finished(self, name: str) -> Shard:
        os.fsync(self._stream.fileno())
        return Shard(name, self._size, self._digest.hexdigest(), self._crcs)

    def __enter__(self) -> "_ShardFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
