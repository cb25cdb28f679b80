"""Shards get their names, an index that finds every file in them, and a manifest."""

import hashlib
import os
import sys
from array import array
from collections.abc import Callable

from rabaska.node import files
from rabaska.node.data import pack_format
from rabaska.node.data.pack_format import RECORD
from rabaska.packing import pack_cache
from rabaska.packing.listing_file import ENDS, HASHES, NAMES, Draft, drop
from rabaska.packing.write_shards import Written, records_name

_SHARD_FIELD = 10  # where a record names its shard, counted in words of four bytes
_WORDS = RECORD.size // 4


def describe(
    draft: Draft, name: str, written: list[Written], end: list[bytes]
) -> pack_format.Manifest:
    """Give the shards their names; write the index and, last, the manifest."""
    shards: list[pack_format.Shard] = []
    records: list[str] = []
    for cut in written:
        for part, (shard, _, _) in enumerate(cut.parts):
            named = shard._replace(name=pack_format.shard_name(len(shards)))
            os.rename(
                os.path.join(draft.folder, shard.name), os.path.join(draft.folder, named.name)
            )
            shards.append(named)
            records.append(os.path.join(draft.folder, records_name(cut.number, part)))
    total, size, sha256 = _write_index(draft, records, end)
    manifest = pack_format.Manifest(name, "", draft.layout.files, total, size, sha256, shards)
    manifest = manifest._replace(digest=pack_format.digest_of(manifest))
    files.write_json(
        os.path.join(draft.folder, pack_format.MANIFEST), pack_format.to_json(manifest)
    )
    for left in pack_cache.notes(draft.folder):
        os.unlink(os.path.join(draft.folder, left))
    drop(draft, (ENDS, HASHES))
    return manifest


def _write_index(draft: Draft, records: list[str], end: list[bytes]) -> tuple[int, int, str]:
    """Join the records of all shards, those of links and folders, and the names."""
    path = os.path.join(draft.folder, pack_format.INDEX)
    total = size = 0
    digest = hashlib.sha256()

    with open(path, "wb", buffering=0) as index:

        def add(content: bytes) -> None:
            nonlocal size
            size += len(content)
            digest.update(content)
            rest = memoryview(content)
            while rest:
                rest = rest[index.write(rest) :]

        add(draft.layout.header())
        for number, part in enumerate(records):
            content, contents = _numbered(part, number)
            add(content)
            total += contents
        add(_in_shard(b"".join(end), len(records) - 1))
        _move(os.path.join(draft.folder, NAMES), add)
        os.fsync(index.fileno())
    return total, size, digest.hexdigest()


def _numbered(path: str, number: int) -> tuple[bytes, int]:
    """The records in the file `path` with the number of their shard, and the bytes they stand for.

    The file goes.
    """
    with open(path, "rb") as stream:
        content = stream.read()
    os.unlink(path)
    sizes = memoryview(content).cast("Q")[1 :: RECORD.size // 8]
    return _in_shard(content, number), sum(sizes.tolist())


def _in_shard(records: bytes, number: int) -> bytes:
    changed = bytearray(records)
    if sys.byteorder == "big":
        number = int.from_bytes(number.to_bytes(4, "little"), "big")
    with memoryview(changed) as view, view.cast("I") as words:
        count = len(words) // _WORDS
        words[_SHARD_FIELD::_WORDS] = array("I", [number]) * count
    return bytes(changed)


def _move(part: str, add: Callable[[bytes], None]) -> None:
    with open(part, "rb", buffering=0) as stream:
        for piece in iter(lambda: stream.read(2**20), b""):
            add(piece)
    os.unlink(part)
