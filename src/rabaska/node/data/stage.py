"""Packs onto node-local storage: as the folder they were, or as shards read in place."""

import os
import shutil
from typing import Callable, Iterator, Optional, Tuple

from .. import partial
from . import unpack
from .blocks import blocks_of, copy_blocks, damaged
from .inspection import open_sealed
from .packs import INDEX, MANIFEST, Index, Manifest, load_manifest, sha256_of

FILES = "files"
SHARDS = "shards"

_PIECE = 2**20

Progress = Callable[[int, int], None]  # files and bytes staged so far


def stage(
    pack_folder: str, target_parent: str, mode: str = FILES, progress: Optional[Progress] = None
) -> str:
    """Stage the pack below `target_parent`; the path that the program shall read.

    It is there whole or not at all, and checked as it was copied: DamagedPack names a shard that
    was wrong twice. What is already staged there is used again. OSError when space runs out.
    """
    if mode not in (FILES, SHARDS):
        raise ValueError("a pack is staged as {} or {}, not {!r}".format(FILES, SHARDS, mode))
    manifest, index = open_sealed(pack_folder)
    try:
        target = os.path.join(target_parent, "{}.{}".format(manifest.identity, mode))
        if os.path.isdir(target):
            return target
        os.makedirs(target_parent, exist_ok=True)
        partial.sweep(target_parent)
        folder = partial.begin(target_parent, os.path.basename(target))
        try:
            copy = unpack.unpack if mode == FILES else _copy_shards
            _tell(copy(pack_folder, folder.path, manifest, index), progress)
        except BaseException:
            partial.abandon(folder)
            raise
        # Not synced: after a crash of the node, nobody trusts its local storage anyway.
        partial.finish(folder, target)
        return target
    finally:
        index.close()


def link(pack_folder: str, target_parent: str) -> str:
    """A folder that shows the pack where it lies; the path that the program shall read."""
    manifest, index = open_sealed(pack_folder)
    index.close()
    target = os.path.join(target_parent, manifest.identity)
    os.mkdir(target)
    for name in [INDEX, MANIFEST] + [shard.name for shard in manifest.shards]:
        os.symlink(os.path.join(os.path.abspath(pack_folder), name), os.path.join(target, name))
    return target


def remove(path: str) -> None:
    """Remove a staged folder, read-only folders included."""
    partial.remove_tree(path)


def _tell(steps: Iterator[Tuple[int, int]], progress: Optional[Progress]) -> None:
    done_files = done_bytes = 0
    for files, size in steps:
        done_files, done_bytes = done_files + files, done_bytes + size
        if progress:
            progress(done_files, done_bytes)


def _copy_shards(
    pack_folder: str, target: str, manifest: Manifest, index: Index
) -> Iterator[Tuple[int, int]]:
    """Copy shards, several blocks at once, then what describes them."""
    for shard in manifest.shards:
        with open(os.path.join(target, shard.name), "wb") as stream:
            stream.truncate(shard.size)
    blocks = blocks_of(manifest, list(range(len(manifest.shards))))
    for block in copy_blocks(pack_folder, target, manifest, blocks):
        yield 0, block.size
    describe(pack_folder, target, manifest)
    yield manifest.files, 0


def describe(pack_folder: str, target: str, manifest: Manifest) -> None:
    """Copy index and manifest, and check them."""
    for name in (INDEX, MANIFEST):
        _copy_small(os.path.join(pack_folder, name), os.path.join(target, name))
    described = load_manifest(target) == manifest
    if not described or sha256_of(os.path.join(target, INDEX)) != manifest.index_sha256:
        raise damaged(pack_folder, INDEX)


def _copy_small(source: str, target: str) -> None:
    with open(source, "rb") as reading, open(target, "wb") as writing:
        shutil.copyfileobj(reading, writing, _PIECE)
