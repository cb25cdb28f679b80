"""A pack: tar shards, an index that finds every file in them, a manifest that vouches for both.

<name>-<digest>/
  manifest.json     counts, and for each shard its size, digest and the crc32 of every block
  index             binary, below
  shard-00000.tar … plain POSIX tar: files in the order of their names, then links, then folders

The index is little-endian and can be read by `mmap`, `struct` or `numpy.frombuffer` alike:
a header, one record of 64 bytes for each entry (files first: sample i is record i), then all names,
each followed by the target if it is a link. Names are bytes, relative, with `/`.
"""

import hashlib
import json
import mmap
import os
import re
import struct
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Tuple

from .. import files

FORMAT = 3
MANIFEST = "manifest.json"
INDEX = "index"
BLOCK = 16 * 2**20  # shards are checked and copied in blocks of this size

FILE, LINK, FOLDER = 0, 1, 2
# What a pack says of every file's time and mode, whatever the disk says: a copy of a dataset is the
# same dataset. The time is the first that a zip can hold, in seconds.
TIME = 315532800
PLAIN, PROGRAM, FOLDER_MODE, LINK_MODE = 0o644, 0o755, 0o755, 0o777
NO_CLASS = -1

MAGIC = b"RABASKA\0"
# magic, format, record size, files, links, folders, names size, two reserved
HEADER = struct.Struct("<8sIIQQQQQQ")
# offset, size, mtime in ns, where the name is, its length, length of the link's target, shard,
# crc32 of the content, permission bits, kind, class, reserved
RECORD = struct.Struct("<QQqQIIIIIIiI")


class BadPack(Exception):
    """A pack is not what its manifest says, or was made to do harm."""

    remedy = ""  # what to do about it, where that is known


class Shard(NamedTuple):
    name: str
    size: int
    digest: str  # see `tree_digest`
    crcs: List[int]  # crc32 of each block


class Manifest(NamedTuple):
    name: str
    digest: str
    files: int
    bytes: int  # of the files' contents
    index_size: int
    index_sha256: str
    shards: List[Shard]

    @property
    def identity(self) -> str:
        return "{}-{}".format(self.name, self.digest[:12])


class Entry(NamedTuple):
    name: bytes
    kind: int
    offset: int  # of the content in its shard
    size: int
    mtime_ns: int
    mode: int
    shard: int
    crc: int
    label: int  # position of its first folder among the first folders, or NO_CLASS
    target: bytes


class IndexLayout(NamedTuple):
    """How many entries of each kind an index holds, and how long its names are."""

    files: int
    links: int
    folders: int
    names: int

    @property
    def entries(self) -> int:
        return self.files + self.links + self.folders

    @property
    def names_at(self) -> int:
        return HEADER.size + self.entries * RECORD.size

    def header(self) -> bytes:
        return HEADER.pack(
            MAGIC, FORMAT, RECORD.size, self.files, self.links, self.folders, self.names, 0, 0
        )


def shard_name(number: int) -> str:
    return "shard-{:05d}.tar".format(number)


def digest_of(manifest: Manifest) -> str:
    """What the pack holds, as one digest; its name is not part of it."""
    body = to_json(manifest)
    del body["name"], body["digest"]
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def to_json(manifest: Manifest) -> Dict[str, Any]:
    value = dict(manifest._asdict())
    value["shards"] = [dict(shard._asdict()) for shard in manifest.shards]
    value.update(format=FORMAT, block=BLOCK)
    return value


def load_manifest(folder: str) -> Manifest:
    """The manifest in `folder`, after it was found to agree with itself."""
    try:
        value = files.read_json(os.path.join(folder, MANIFEST))
    except (ValueError, RecursionError) as problem:
        raise BadPack("{} in {} cannot be read: {}".format(MANIFEST, folder, problem))
    if value is None:
        raise BadPack("{} contains no {}".format(folder, MANIFEST))
    if value.get("format") != FORMAT or value.get("block") != BLOCK:
        raise BadPack("the pack in {} has a format that this rabaska cannot read".format(folder))
    try:
        fields = {name: value[name] for name in Manifest._fields}
        fields["shards"] = [Shard(**shard) for shard in value["shards"]]
        manifest = Manifest(**fields)
        agrees = digest_of(manifest) == manifest.digest
    except (KeyError, TypeError, ValueError) as problem:
        raise BadPack("{} in {} is damaged: {!r}".format(MANIFEST, folder, problem))
    if not agrees:
        raise BadPack("{} in {} was changed: its digest does not match".format(MANIFEST, folder))
    _refuse_odd_shards(manifest)
    return manifest


def _refuse_odd_shards(manifest: Manifest) -> None:
    if not re.match(r"[\w.-]+\Z", manifest.name, re.ASCII) or manifest.name.startswith("."):
        raise BadPack("a pack cannot be called {!r}".format(manifest.name))
    for number, shard in enumerate(manifest.shards):
        blocks = -(-shard.size // BLOCK)
        if shard.name != shard_name(number) or shard.size < 0 or len(shard.crcs) != blocks:
            raise BadPack("shard {} of {} has a wrong entry".format(number, manifest.name))


class Index:
    """The index of a pack, mapped into memory and shared by every process that opens it."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as stream:
            self.map = _mapped(stream, path)
        self.layout = self._read_header(path)
        self._names_at = self.layout.names_at

    def _read_header(self, path: str) -> IndexLayout:
        if len(self.map) < HEADER.size:
            raise BadPack("{} is too short to be an index".format(path))
        magic, version, record, files_, links, folders, names, _, _ = HEADER.unpack_from(self.map)
        if magic != MAGIC or version != FORMAT or record != RECORD.size:
            raise BadPack("{} is not an index that this rabaska can read".format(path))
        layout = IndexLayout(files_, links, folders, names)
        if len(self.map) != layout.names_at + layout.names:
            raise BadPack("{} is not as long as its own header says".format(path))
        return layout

    def __len__(self) -> int:
        return self.layout.entries

    def record(self, position: int) -> Tuple[int, ...]:
        return RECORD.unpack_from(self.map, HEADER.size + position * RECORD.size)

    def entry(self, position: int) -> Entry:
        return self._entry(self.record(position))

    def records(self, begin: int, end: int) -> Iterator[Tuple[int, ...]]:
        first, last = (HEADER.size + place * RECORD.size for place in (begin, end))
        # Copied piece by piece: a view into the map would keep it from being closed.
        step = 4096 * RECORD.size
        for place in range(first, last, step):
            yield from RECORD.iter_unpack(self.map[place : min(place + step, last)])

    def entries(self, begin: int, end: int) -> Iterator[Entry]:
        return map(self._entry, self.records(begin, end))

    def places(self) -> Iterator[Tuple[int, int, int]]:
        """Size, shard and offset of every file."""
        for record in self.records(0, self.layout.files):
            yield record[1], record[6], record[0]

    def sizes(self) -> Iterator[int]:
        return (record[1] for record in self.records(0, self.layout.files))

    def text(self, begin: int, end: int) -> bytes:
        """Names that lie side by side."""
        return self.map[self._names_at + begin : self._names_at + end]

    def files(self) -> Iterator[Entry]:
        return self.entries(0, self.layout.files)

    def links(self) -> Iterator[Entry]:
        return self.entries(self.layout.files, self.layout.files + self.layout.links)

    def folders(self) -> Iterator[Entry]:
        return self.entries(self.layout.files + self.layout.links, self.layout.entries)

    def _entry(self, record: Tuple[int, ...]) -> Entry:
        offset, size, mtime, at, length, target, shard, crc, mode, kind, label, _ = record
        at += self._names_at
        return Entry(
            self.map[at : at + length],
            kind,
            offset,
            size,
            mtime,
            mode,
            shard,
            crc,
            label,
            self.map[at + length : at + length + target],
        )

    def close(self) -> None:
        self.map.close()


def _mapped(stream: BinaryIO, path: str) -> mmap.mmap:
    try:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:
        raise BadPack("{} is empty".format(path))


def sha256_of(path: str) -> str:
    digest, room = hashlib.sha256(), memoryview(bytearray(2**18))
    with open(path, "rb", buffering=0) as stream:
        for count in iter(lambda: stream.readinto(room), 0):
            digest.update(room[:count])
    return digest.hexdigest()
