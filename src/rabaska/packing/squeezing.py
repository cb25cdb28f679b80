"""Whether compressing pays, measured on a sample: text shrinks, pictures do not."""

import os
import zlib

from rabaska.node.data.packs import Shard, load_manifest

_SAMPLED = 16
_PIECE = 2**16
_QUICKEST = 1
_PAYS = 0.7


def shrinks_to(folder: str) -> float:
    """To what part of its size a pack would shrink, from pieces all over it."""
    shards = load_manifest(folder).shards
    pieces = [_piece(folder, shards, number / _SAMPLED) for number in range(_SAMPLED)]
    before = sum(map(len, pieces))
    after = sum(len(zlib.compress(piece, _QUICKEST)) for piece in pieces)
    return after / before if before else 1.0


def pays(part: float) -> bool:
    """Whether what shrinks to that part is worth compressing on its way to a cluster."""
    return part <= _PAYS


def _piece(folder: str, shards: list[Shard], where: float) -> bytes:
    at = int(where * sum(shard.size for shard in shards))
    for shard in shards:
        if at < shard.size:
            break
        at -= shard.size
    with open(os.path.join(folder, shard.name), "rb", buffering=0) as stream:
        stream.seek(at)
        return stream.read(_PIECE)
