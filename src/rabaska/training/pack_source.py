"""Samples from the shards of a pack, compared with their checksums as they are read."""

import mmap
import os
import struct
import time
from array import array
from typing import Any, Dict, List, Optional, Sequence

from rabaska.node.data import pack_proof
from rabaska.node.data.background_copy import SOURCE
from rabaska.node.data.blocks import crc32, forget
from rabaska.node.data.pack_format import (
    FOLDER,
    HEADER,
    INDEX,
    MANIFEST,
    RECORD,
    Index,
    shard_name,
)
from rabaska.node.data.read_ahead import ahead, read_at
from rabaska.node.native import compiled

from .errors import DamagedData
from .folder_source import Columns, Sample
from .index_fields import IndexFields
from .prefetch import warm

compiled_samples = compiled.samples if compiled else None  # reads a batch in one call

_LARGE_BATCH = 8 * 2**20  # bytes from which on several reads at once pay, on slow storage above all
_BETWEEN = 1024  # bytes between two neighbours: the end of a block, and a header of tar
_NOT_OPEN = -1
_LOOK_AGAIN = 2.0  # seconds until a shard that was not here is looked for again
_SAMPLE = struct.Struct("<QQ24xII8xi4x")  # offset, size, shard, crc32, class of a record


def is_pack(path: str) -> bool:
    return all(os.path.isfile(os.path.join(path, name)) for name in (INDEX, MANIFEST))


class PackSource:
    """Samples found by the index and read from the shards, without a seek that workers share.

    Each is compared with the crc32 that the index has of it before it is handed out, unless its
    whole shard was proven on this node. Where all shards fit into memory, once is enough; what is
    larger comes from the disk again in every epoch, and is compared again.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._index = Index(os.path.join(path, INDEX))
        self._fields = IndexFields(self._index)
        self._shards = array("i", [_NOT_OPEN]) * self._shard_count()  # descriptors
        self._elsewhere = _elsewhere(path)
        self._proven = _proven(path, len(self._shards))
        self._compared: Any = bytearray()  # a byte for each sample, 1 once it was; or none at all
        self._looked: Dict[int, float] = {}
        self.classes = [
            entry.name
            for entry in self._index.folders()
            if entry.kind == FOLDER and b"/" not in entry.name
        ]

    def __len__(self) -> int:
        return self._index.layout.files

    def name(self, position: int) -> bytes:
        return self._index.entry(position).name

    def warm(self) -> None:
        """Ask for all shards to be read ahead, if they fit into memory beside everything else."""
        paths = [os.path.join(self._path, shard_name(n)) for n in range(self._shard_count())]
        if warm(paths) and len(self):
            self._compared = mmap.mmap(-1, len(self))  # forked workers write into the same

    def _shard_count(self) -> int:
        # Each holds a file at least, whatever a damaged index says.
        return min(self._index.record(len(self) - 1)[6] + 1, len(self)) if len(self) else 0

    def sample(self, position: int) -> Sample:
        place = HEADER.size + position * RECORD.size
        offset, size, shard, crc, label = _SAMPLE.unpack_from(self._index.map, place)
        descriptor = self._shards[shard]
        usual = descriptor != _NOT_OPEN and not self._looked
        content = os.pread(descriptor, size, offset) if usual else b""
        if len(content) != size:
            content = self._read(shard, size, offset)
        compared = self._compared
        if not (compared and compared[position]) and not self._is_proven(shard):
            if crc32(content) != crc:
                content = self._read_again(position)
            elif compared:
                compared[position] = 1
        return content, label

    def at_once(self, positions: Sequence[int]) -> Optional[Columns]:
        """A batch by C, if it is here and nothing is odd, such as a position."""
        if compiled_samples is None or self._looked:
            return None
        columns: Optional[Columns] = compiled_samples(
            self._index.map,
            len(self),
            positions,
            self._shards,
            _LARGE_BATCH,
            self._proven,
            self._compared,
        )
        return columns

    def columns(self, positions: List[int]) -> Columns:
        """A batch, in the order in which it was asked for."""
        offsets, sizes, shards, labels = self._fields.places(positions)
        used = set(shards)
        for shard in used:
            self._descriptor(shard)
        contents = (
            self._neighbours(offsets, sizes, shards)
            if len(used) == 1
            else self._contents(offsets, sizes, shards)
        )
        if not all(map(self._is_proven, used)):
            self._compare(positions, contents)
        return contents, labels

    def _compare(self, positions: List[int], contents: List[bytes]) -> None:
        """Compare samples with their sums, and read once more what is not as it was packed."""
        compared = self._compared
        if compared and all(map(compared.__getitem__, positions)):
            return
        crcs = self._fields.crcs(positions)
        if list(map(crc32, contents)) != crcs:
            for number, content in enumerate(contents):
                if crc32(content) != crcs[number]:
                    contents[number] = self._read_again(positions[number])
            return
        if compared:
            for position in positions:
                compared[position] = 1

    def _neighbours(self, offsets: List[int], sizes: List[int], shards: List[int]) -> List[bytes]:
        """Samples of one shard: in one call where they are neighbours, as in an epoch in order."""
        first, end, size = offsets[0], offsets[-1] + sizes[-1], sum(sizes)
        most = min(size + _BETWEEN * len(sizes), _LARGE_BATCH)
        if not 0 < end - first <= most or len(sizes) == 1 or offsets != sorted(offsets):
            return self._contents(offsets, sizes, shards)
        content = self._read(shards[0], end - first, first)
        contents = [content[at - first : at - first + long] for at, long in zip(offsets, sizes)]
        if sum(map(len, contents)) != size:  # an odd index: one reaches beyond the last
            return self._contents(offsets, sizes, shards)
        return contents

    def _contents(self, offsets: List[int], sizes: List[int], shards: List[int]) -> List[bytes]:
        size = sum(sizes)
        if size >= _LARGE_BATCH:
            places = list(zip(shards, sizes, offsets))
            # What is open stays open meanwhile: only this thread looks for shards that arrived.
            return list(ahead(lambda place: self._read_at(self._shards[place[0]], *place), places))
        opened = map(self._shards.__getitem__, shards)
        contents = list(map(os.pread, opened, sizes, offsets))
        if sum(map(len, contents)) != size:
            contents = list(map(self._read, shards, sizes, offsets))
        return contents

    def shards_of(self, positions: List[int]) -> List[int]:
        """The shard in which each of the samples lies."""
        return self._fields.places(positions)[2] if positions else []

    def arrived(self) -> List[bool]:
        """Which shards are here already, and not only where they come from."""
        paths = (os.path.join(self._path, shard_name(n)) for n in range(self._shard_count()))
        return [os.path.exists(path) for path in paths]

    def _is_proven(self, shard: int) -> bool:
        """Whether all of a shard was compared; not if it is read from where it comes from."""
        return self._proven[shard] == 1 and shard not in self._looked

    def _read(self, shard: int, size: int, offset: int) -> bytes:
        return self._read_at(self._descriptor(shard), shard, size, offset)

    def _read_at(self, descriptor: int, shard: int, size: int, offset: int) -> bytes:
        content = read_at(descriptor, size, offset)
        if len(content) < size:
            raise self._damaged("{} was cut short".format(shard_name(shard)))
        return content

    def _read_again(self, position: int) -> bytes:
        """A sample that was wrong: from the disk, and then from a file that is opened anew."""
        offset, size, _, _, _, _, shard, crc = self._index.record(position)[:8]
        for find in (self._descriptor, self._open):
            descriptor = find(shard)
            forget(descriptor, offset, size)
            content = self._read_at(descriptor, shard, size, offset)
            if crc32(content) == crc:
                return content
        what = "{} is damaged: {} does not match what was packed"
        raise self._damaged(what.format(shard_name(shard), os.fsdecode(self.name(position))))

    def _damaged(self, what: str) -> DamagedData:
        pack_proof.note_damage(self._path, what)  # the program may hide what we raise
        run = os.environ.get("RABASKA_RUN", "")
        hint = "`rabaska explain {}` names the command that repairs it".format(run) if run else ""
        return DamagedData(what, "it was read twice from {}".format(self._path), hint)

    def _descriptor(self, shard: int) -> int:
        descriptor = self._shards[shard]
        if descriptor != _NOT_OPEN and (not self._looked or not self._is_due(shard)):
            return descriptor
        return self._open(shard)

    def _is_due(self, shard: int) -> bool:
        return time.monotonic() > self._looked.get(shard, float("inf"))

    def _open(self, shard: int) -> int:
        """Open a shard here, or where it comes from as long as it has not arrived."""
        name = shard_name(shard)
        try:
            opened = os.open(os.path.join(self._path, name), os.O_RDONLY | os.O_CLOEXEC)
            self._looked.pop(shard, None)
            if _changed_since_proof(opened, self._path):
                self._proven = bytes(len(self._proven))  # from now on all are compared
                self._compared = bytearray()
        except FileNotFoundError:
            if self._elsewhere is None:
                raise
            opened = os.open(os.path.join(self._elsewhere, name), os.O_RDONLY | os.O_CLOEXEC)
            self._looked[shard] = time.monotonic() + _LOOK_AGAIN
            self._compared = bytearray()  # that was a copy which is gone
        if self._shards[shard] != _NOT_OPEN:
            self._compared = bytearray()  # that was another file
            os.close(self._shards[shard])
        self._shards[shard] = opened
        return opened

    def __del__(self) -> None:
        for descriptor in getattr(self, "_shards", ()):
            if descriptor != _NOT_OPEN:
                os.close(descriptor)


def _proven(path: str, shards: int) -> Any:
    """Which shards are proven, as whoever staged them writes it down: a byte for each."""
    try:
        with open(os.path.join(path, pack_proof.PROVEN), "rb") as stream:
            proven = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        return proven if len(proven) >= shards else bytes(shards)
    except (OSError, ValueError):
        return bytes(shards)


def _changed_since_proof(shard: int, path: str) -> bool:
    """Whether somebody wrote to an open shard after the last one was proven."""
    try:
        proven = os.stat(os.path.join(path, pack_proof.PROVEN)).st_mtime_ns
    except OSError:
        return False  # then nobody proved it for us
    return os.fstat(shard).st_ctime_ns > proven


def _elsewhere(path: str) -> Optional[str]:
    try:
        with open(os.path.join(path, SOURCE), "rb") as stream:
            return os.fsdecode(stream.read())
    except FileNotFoundError:
        return None
