"""Every byte of a pack against its manifest."""

import json
import os
from typing import Callable, Iterator, List, Optional, Tuple

from . import worker_pool
from .pack_format import BadPack, Shard
from .pack_safety import open_pack
from .read_ahead import windows
from .tree_digest import tree_digest

_PIECE = 2**20

Progress = Callable[[int, int], None]  # bytes read so far, and of how many


def main(argv: List[str]) -> int:
    """`verify FOLDER`: print what is wrong with the pack there as a JSON list; null: no pack."""
    print(json.dumps(verify(argv[0]) if os.path.isdir(argv[0]) else None))
    return 0


def verify(folder: str, progress: Optional[Progress] = None) -> List[str]:
    """Everything that is wrong with the pack in `folder`, one sentence each."""
    try:
        manifest, index = open_pack(folder)
    except (BadPack, OSError) as problem:
        return [str(problem)]
    index.close()
    done, total = 0, sum(shard.size for shard in manifest.shards)
    problems = []

    def read(shard: Shard) -> Iterator[Tuple[int, str]]:
        return _read(folder, shard)

    for size, wrong in worker_pool.share(read, manifest.shards, worker_pool.available()):
        done += size
        problems += [wrong] if wrong else []
        if progress:
            progress(done, total)
    return sorted(problems)


def _read(folder: str, shard: Shard) -> Iterator[Tuple[int, str]]:
    """How many bytes were read, as they are; at the end what is wrong with them."""
    digest = tree_digest()
    pieces = [(place, min(_PIECE, shard.size - place)) for place in range(0, shard.size, _PIECE)]
    try:
        for piece in windows(os.path.join(folder, shard.name), pieces):
            digest.update(piece)
            yield len(piece), ""
    except OSError as problem:
        yield 0, str(problem)
        return
    if digest.hexdigest() != shard.digest:
        yield 0, "{} in {} was damaged".format(shard.name, folder)
