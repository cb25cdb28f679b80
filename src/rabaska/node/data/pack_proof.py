"""What is known of a pack: sealed as it was made, and which of its shards are proven or damaged."""

import io
import os
from typing import Optional, Tuple

from .. import files
from .blocks import ROOM, crc32, forget
from .pack_format import BLOCK, INDEX, BadPack, Index, Manifest, Shard, load_manifest, sha256_of

PROVEN = "proven"
DAMAGED = "damaged"


def begin(folder: str, manifest: Manifest, *, proven: bool = False) -> None:
    """Write down that all shards are proven, or none."""
    content = (b"\1" if proven else b"\0") * len(manifest.shards)
    path = os.path.join(folder, PROVEN)
    if not os.path.exists(path):
        files.write_whole(path, content)
        return
    with open(path, "r+b", buffering=0) as stream:  # others may look into the same memory
        stream.write(content)


def mark(folder: str, number: int) -> None:
    """Shard `number` is proven from now on."""
    with open(os.path.join(folder, PROVEN), "r+b", buffering=0) as stream:
        stream.seek(number)
        stream.write(b"\1")


def note_damage(folder: str, why: str) -> None:
    """Leave word for the agent, if the folder is one that was staged.

    Without room on the disk, who found it can still raise it.
    """
    if not os.path.exists(os.path.join(folder, PROVEN)):
        return
    try:
        files.write_whole(os.path.join(folder, DAMAGED), why.encode("utf-8", "replace"))
    except OSError:
        pass


def damage(folder: str) -> Optional[str]:
    """What is wrong with the pack, if anybody found out."""
    try:
        with open(os.path.join(folder, DAMAGED), "rb") as stream:
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return None


def prove(folder: str, manifest: Manifest) -> None:
    """Read all shards in the folder, and write down which are what they should be."""
    for number, shard in enumerate(manifest.shards):
        if not os.path.exists(os.path.join(folder, shard.name)):
            continue  # it has not arrived
        if not is_as_made(folder, shard):
            note_damage(folder, "{} is damaged".format(os.path.join(folder, shard.name)))
            return
        mark(folder, number)


def open_manifest(folder: str) -> Manifest:
    """The manifest of a pack whose parts are all there, and as long as it says."""
    manifest = load_manifest(folder)
    refuse_wrong_sizes(folder, manifest)
    return manifest


def is_complete(folder: str) -> bool:
    """Whether all parts of a pack are there, as long as they should be; nothing is read."""
    try:
        open_manifest(folder)
    except (BadPack, OSError):
        return False
    return True


def open_sealed(folder: str) -> Tuple[Manifest, Index]:
    """Both as they were made; what the index says was not looked at, so nothing may be written."""
    manifest = open_manifest(folder)
    path = os.path.join(folder, INDEX)
    if sha256_of(path) != manifest.index_sha256:
        raise BadPack("the index in {} was damaged".format(folder))
    return manifest, Index(path)


def refuse_wrong_sizes(folder: str, manifest: Manifest) -> None:
    # Sizes first: a transfer cut short is the common case, and this costs no reading.
    _refuse_wrong_size(os.path.join(folder, INDEX), manifest.index_size)
    for shard in manifest.shards:
        _refuse_wrong_size(os.path.join(folder, shard.name), shard.size)


def _refuse_wrong_size(path: str, size: int) -> None:
    try:
        actual = os.stat(path).st_size
    except FileNotFoundError:
        raise BadPack("{} is missing".format(path))
    if actual != size:
        raise BadPack("{} has {} bytes, not {}".format(path, actual, size))


def is_as_made(folder: str, shard: Shard) -> bool:
    """Whether every block of a shard is what it was when it was made."""
    try:
        with open(os.path.join(folder, shard.name), "rb", buffering=0) as reading:
            if os.fstat(reading.fileno()).st_size != shard.size:
                return False
            return all(
                _block_sum(reading, number) == crc or _block_sum(reading, number, again=True) == crc
                for number, crc in enumerate(shard.crcs)
            )
    except OSError:
        return False


def _block_sum(reading: io.RawIOBase, number: int, *, again: bool = False) -> int:
    """The crc32 of a block; `again` from the disk, not from what the system remembers of it."""
    if again:
        forget(reading.fileno(), number * BLOCK, BLOCK)
    crc, left = 0, BLOCK
    room = memoryview(bytearray(ROOM))
    reading.seek(number * BLOCK)
    while left:
        count = reading.readinto(room[:left])
        if not count:
            break
        crc, left = crc32(room[:count], crc), left - count
    return crc
