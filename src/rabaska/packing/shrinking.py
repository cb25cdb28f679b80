"""Whether a pack is worth compressing on its way to a cluster, from pieces all over it."""

import os
import zlib

from rabaska.node.data.pack_format import Shard, load_manifest

_PIECES = 16
_PIECE_SIZE = 2**14  # a quarter of a million bytes in all take a few milliseconds
_QUICKEST = 1
_WORTH_COMPRESSING = 0.7


def shrinks_to(folder: str) -> float:
    """To what part of its size a pack would shrink, from pieces all over it."""
    shards = load_manifest(folder).shards
    pieces = [_piece(folder, shards, number / _PIECES) for number in range(_PIECES)]
    before = sum(map(len, pieces))
    after = sum(len(zlib.compress(piece, _QUICKEST)) for piece in pieces)
    return after / before if before else 1.0


def compression_pays(part: float) -> bool:
    """Whether what shrinks to that part is worth compressing on its way to a cluster."""
    return part <= _WORTH_COMPRESSING


def _piece(folder: str, shards: list[Shard], where: float) -> bytes:
    at = int(where * sum(shard.size for shard in shards))
    for shard in shards:
        if at < shard.size:
            break
        at -= shard.size
    with open(os.path.join(folder, shard.name), "rb", buffering=0) as stream:
        stream.seek(at)
        return stream.read(_PIECE_SIZE)
