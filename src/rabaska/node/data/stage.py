"""Packs onto node-local storage: as the folder they were, or as shards read in place."""

import hashlib
import os
from itertools import chain, islice
from typing import Callable, Iterator, NamedTuple, Optional, Tuple

from .. import partial_folder
from . import pack_proof, worker_pool
from .blocks import STREAMS, Block, blocks_of, copy_blocks, damaged, forget
from .free_space import disk_room
from .pack_format import INDEX, MANIFEST, Manifest, load_manifest
from .pack_proof import open_manifest, open_sealed
from .read_ahead import windows

FILES = "files"
SHARDS = "shards"

_PIECE = 2**18  # small enough to stay in the processor's cache between reading and digesting
_DESCRIPTION = Block(-1, 0, 0)  # manifest and index, among blocks
_SPARE = 64 * 2**20  # bytes of a disk that are left free
_COPIERS = 4  # processes that fill the memory's bandwidth, or nearly

Progress = Callable[[int, int], None]  # files and bytes staged so far
Steps = Iterator[Tuple[int, int]]


class Together(NamedTuple):
    """How several nodes read a pack together."""

    bring: Callable[[str, str, Manifest], Steps]  # from a pack into files that are long enough
    keep: Callable[[partial_folder.PartialFolder], None]  # until the others need it no longer
    refuse: Callable[[], None]  # this node passes on nothing


def stage(
    pack_folder: str,
    target_parent: str,
    mode: str = FILES,
    progress: Optional[Progress] = None,
    together: Optional[Together] = None,
) -> str:
    """Stage the pack below `target_parent`; the path that the program shall read.

    It is there whole or not at all, and checked as it was copied: BadPack names a shard that
    was wrong twice. What is already staged there is used again. OSError when space runs out.
    """
    if mode not in (FILES, SHARDS):
        raise ValueError("a pack is staged as {} or {}, not {!r}".format(FILES, SHARDS, mode))
    manifest = open_manifest(pack_folder)
    target = os.path.join(target_parent, "{}.{}".format(manifest.identity, mode))
    if os.path.isdir(target):
        return target
    os.makedirs(target_parent, exist_ok=True)
    partial_folder.sweep(target_parent)
    folder = partial_folder.begin(target_parent, os.path.basename(target))
    try:
        if together is not None and mode == FILES:
            steps = _unpack_together(pack_folder, folder.path, manifest, together)
        elif together is not None:
            steps = _bring_shards(pack_folder, folder.path, manifest, together)
        else:
            copy = _unpack if mode == FILES else _copy_shards
            steps = copy(pack_folder, folder.path, manifest)
        _report(steps, progress)
    except BaseException:
        partial_folder.abandon(folder)
        raise
    # Not synced: after a crash of the node, nobody trusts its local storage anyway.
    partial_folder.finish(folder, target, durable=False)
    return target


def link(pack_folder: str, target_parent: str) -> str:
    """A folder that shows the pack where it lies; the path that the program shall read."""
    manifest, index = open_sealed(pack_folder)
    index.close()
    target = os.path.join(target_parent, manifest.identity)
    os.mkdir(target)
    for name in [INDEX, MANIFEST] + [shard.name for shard in manifest.shards]:
        os.symlink(os.path.join(os.path.abspath(pack_folder), name), os.path.join(target, name))
    pack_proof.begin(target, manifest)
    return target


def remove(path: str) -> None:
    """Remove a staged folder, read-only folders included."""
    partial_folder.remove_tree(path)


def _report(steps: Iterator[Tuple[int, int]], progress: Optional[Progress]) -> None:
    done_files = done_bytes = 0
    for count, size in steps:
        done_files, done_bytes = done_files + count, done_bytes + size
        if progress:
            progress(done_files, done_bytes)


def _unpack(pack_folder: str, target: str, manifest: Manifest) -> Iterator[Tuple[int, int]]:
    from . import unpack  # only here: whoever takes shards as they are waits for none of it

    return unpack.unpack(pack_folder, target, manifest)


def _unpack_together(
    pack_folder: str, target: str, manifest: Manifest, together: Together
) -> Steps:
    """Unpack from shards that came from other nodes; if there is room for both."""
    parent = os.path.dirname(target)
    shards = sum(shard.size for shard in manifest.shards) + manifest.index_size
    if disk_room(parent)[0] < 2 * shards + _SPARE:
        together.refuse()
        yield from _unpack(pack_folder, target, manifest)
        return
    folder = partial_folder.begin(parent, "shards-" + manifest.identity)
    together.keep(folder)
    for _ in _bring_shards(pack_folder, folder.path, manifest, together):
        pass
    yield from _unpack(folder.path, target, manifest)


def _bring_shards(pack_folder: str, target: str, manifest: Manifest, together: Together) -> Steps:
    _make_room(target, manifest)
    with open(os.path.join(target, INDEX), "wb"):
        pass
    copy_manifest(pack_folder, target, manifest)
    yield from together.bring(pack_folder, target, manifest)
    pack_proof.begin(target, manifest, proven=True)
    yield manifest.files, 0


def _make_room(target: str, manifest: Manifest) -> None:
    """Files that are as long as the shards."""
    for shard in manifest.shards:
        with open(os.path.join(target, shard.name), "wb") as stream:
            stream.truncate(shard.size)


def _copy_shards(pack_folder: str, target: str, manifest: Manifest) -> Iterator[Tuple[int, int]]:
    """Copy shards, each process the next block that nobody has begun."""
    _make_room(target, manifest)
    count = min(worker_pool.available(), _COPIERS)
    blocks = blocks_of(manifest, list(range(len(manifest.shards))))

    def copy(mine: Iterator[Block]) -> Iterator[Tuple[int, int]]:
        first = list(islice(mine, 1))
        if first == [_DESCRIPTION]:
            describe(pack_folder, target, manifest)
            first = []
        drawn = chain(first, mine)
        for block in copy_blocks(pack_folder, target, manifest, drawn, STREAMS // count):
            yield 0, block.size

    yield from worker_pool.draw(copy, [_DESCRIPTION] + blocks, count)
    pack_proof.begin(target, manifest, proven=True)
    yield manifest.files, 0


def describe(pack_folder: str, target: str, manifest: Manifest) -> None:
    """Copy manifest and index, and check them."""
    copy_manifest(pack_folder, target, manifest)
    copy_index(pack_folder, target, manifest)


def copy_manifest(pack_folder: str, target: str, manifest: Manifest) -> None:
    with open(os.path.join(pack_folder, MANIFEST), "rb") as reading:
        with open(os.path.join(target, MANIFEST), "wb") as writing:
            writing.write(reading.read())
    if load_manifest(target) != manifest:
        raise damaged(pack_folder, MANIFEST)


def copy_index(pack_folder: str, target: str, manifest: Manifest) -> None:
    index = os.path.join(pack_folder, INDEX)
    for _ in range(2):
        copied = _copy_index(index, os.path.join(target, INDEX), manifest.index_size)
        if copied == manifest.index_sha256:
            return
        with open(index, "rb") as reading:
            forget(reading.fileno(), 0, 0)
    raise damaged(pack_folder, INDEX)


def _copy_index(source: str, target: str, size: int) -> str:
    """Copy the index and return its sha256."""
    digest = hashlib.sha256()
    parts = [(place, min(_PIECE, size - place)) for place in range(0, size, _PIECE)]
    with open(target, "wb") as writing:
        for piece in windows(source, parts):
            digest.update(piece)
            writing.write(piece)
    return digest.hexdigest()
