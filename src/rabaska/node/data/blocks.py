"""Blocks of shards, copied and checked: the unit in which a shard is moved."""

import io
import os
import zlib
from typing import Callable, Iterable, Iterator, List, NamedTuple, Union

from ..native import compiled
from .pack_format import BLOCK, BadPack, Manifest
from .read_ahead import Watch, ahead

crc32: Callable[..., int] = compiled.crc32 if compiled else zlib.crc32

STREAMS = 16
_PIECE = 2**20
ROOM = 2**18  # small enough to stay in the processor's cache between reading, summing and writing
_PAGE = 2**16  # the largest that processors in clusters use


class Block(NamedTuple):
    shard: int
    number: int
    size: int


def blocks_of(manifest: Manifest, numbers: List[int]) -> List[Block]:
    """Every block of these shards, in turns, so that all of them are read at once."""
    blocks = [
        Block(number, place, min(BLOCK, manifest.shards[number].size - place * BLOCK))
        for number in numbers
        for place in range(len(manifest.shards[number].crcs))
    ]
    return sorted(blocks, key=lambda block: (block.number, block.shard))


def copy_blocks(
    pack_folder: str,
    target: str,
    manifest: Manifest,
    blocks: Iterable[Block],
    streams: int = STREAMS,
) -> Iterator[Block]:
    """Copy blocks into files of `target` that are as long as their shards; each when it is done.

    One after the other, which is quickest, until one keeps us waiting; then in several streams.
    """

    def copy(block: Block) -> Block:
        copy_block(pack_folder, target, manifest, block)
        return block

    left = iter(blocks)
    for block in left:
        watch = Watch()
        copy(block)
        slow = watch.was_slow(block.size)
        yield block
        if slow:
            yield from ahead(copy, left, streams)


def copy_block(pack_folder: str, target: str, manifest: Manifest, block: Block) -> None:
    shard = manifest.shards[block.shard]
    with open(os.path.join(pack_folder, shard.name), "rb", buffering=0) as reading:
        writing = os.open(os.path.join(target, shard.name), os.O_WRONLY)
        try:
            for _ in range(2):
                if _copied(reading, writing, block) == shard.crcs[block.number]:
                    return
                forget(reading.fileno(), block.number * BLOCK, block.size)
        finally:
            os.close(writing)
    raise damaged(pack_folder, shard.name)


def _copied(reading: io.RawIOBase, writing: int, block: Block) -> int:
    """Copy one block and return its crc32."""
    crc, offset = 0, block.number * BLOCK
    end = offset + block.size
    room = memoryview(bytearray(min(ROOM, block.size)))
    reading.seek(offset)
    while offset < end:
        count = reading.readinto(room[: end - offset])
        if not count:
            return -1  # cut short
        crc = crc32(room[:count], crc)
        write_at(writing, room[:count], offset)
        offset += count
    return crc


def checked_block(pack_folder: str, manifest: Manifest, number: int, block: int) -> bytes:
    """One block of a shard, read again if it was wrong the first time."""
    shard = manifest.shards[number]
    offset = block * BLOCK
    size = min(BLOCK, shard.size - offset)
    reading = os.open(os.path.join(pack_folder, shard.name), os.O_RDONLY)
    try:
        for _ in range(2):
            pieces = ahead(
                lambda place: os.pread(reading, min(_PIECE, offset + size - place), place),
                range(offset, offset + size, _PIECE),
            )
            content = b"".join(pieces)
            if crc32(content) == shard.crcs[block]:
                return content
            forget(reading, offset, size)
    finally:
        os.close(reading)
    raise damaged(pack_folder, shard.name)


def write_at(descriptor: int, content: Union[bytes, memoryview], offset: int) -> None:
    rest = memoryview(content)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written


def forget(descriptor: int, offset: int, size: int) -> None:
    """Drop what the system remembers of a file, so that the next read fetches it again.

    The system keeps pages that are only named in part, so whole ones are named.
    """
    if hasattr(os, "posix_fadvise"):
        before, after = offset % _PAGE, -(offset + size) % _PAGE
        length = before + size + after if size else 0  # 0 is all that follows
        os.posix_fadvise(descriptor, offset - before, length, os.POSIX_FADV_DONTNEED)


def damaged(pack_folder: str, shard: str) -> BadPack:
    return BadPack("{} in {} is damaged: it was read twice".format(shard, pack_folder))
