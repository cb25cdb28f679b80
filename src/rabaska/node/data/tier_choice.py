"""Where on its node a pack goes: into memory, onto the disk, or nowhere, by what has room."""

import os
from typing import List, NamedTuple, Optional, Sequence

from .free_space import disk_room, free_memory
from .pack_format import Manifest

MEMORY, DISK, LEFT = "in memory", "on the node's disk", "read in place"

# The Alliance's advice is memory for up to 10 GB; the program needs most of it for itself.
_MOST_IN_MEMORY = 10 * 10**9
_MEMORY_SHARE = 0.25
_DISK_SHARE = 0.9  # what is left after staging must do for the program
_IN_MEMORY = ("tmpfs", "ramfs")


class NodeTier(NamedTuple):
    kind: str
    folder: str
    bytes: int  # that may be put there
    files: Optional[int] = None  # likewise; None: as many as one likes


class NoTierFits(OSError):
    """A dataset fits nowhere on the node."""


def needed(manifest: Manifest, *, as_files: bool) -> NodeTier:
    """What a pack takes, as the least tier that could hold it."""
    if as_files:
        return NodeTier("", "", manifest.bytes, manifest.files)
    return NodeTier("", "", sum(shard.size for shard in manifest.shards) + manifest.index_size)


def choose(needed: NodeTier, tiers: Sequence[NodeTier]) -> Optional[NodeTier]:
    """The first tier with room for it."""
    for tier in tiers:
        few_enough = tier.files is None or (needed.files or 0) <= tier.files
        if needed.bytes <= tier.bytes and few_enough:
            return tier
    return None


def tiers_here(memory: str, disk: str) -> List[NodeTier]:
    """What this node offers, the best first; `memory` may be "" where the site has no such folder.

    A folder in memory counts as memory of the job, so it may take only a share of that.
    """
    spare = min(_MOST_IN_MEMORY, int(_MEMORY_SHARE * free_memory()))
    choices = []
    if os.path.isdir(memory) and os.access(memory, os.W_OK):
        choices.append(_tier(MEMORY, memory, spare))
    if kind_of(disk) == MEMORY:
        return choices + [_tier(MEMORY, disk, free_memory())]
    return choices + [_tier(DISK, disk, None)]


def _tier(kind: str, folder: str, most: Optional[int]) -> NodeTier:
    free, files = disk_room(folder)
    room = int(free * _DISK_SHARE)
    return NodeTier(kind, folder, room if most is None else min(room, most), files)


def kind_of(folder: str) -> str:
    """Whether a folder lies in memory or on a disk."""
    place, best = os.path.realpath(folder), ("", "")
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as stream:
            for line in stream:
                _, mounted, kind = line.split()[:3]
                above = place == mounted or place.startswith(mounted.rstrip("/") + "/")
                if above and len(mounted) >= len(best[0]):
                    best = mounted, kind
    except OSError:  # not Linux
        return DISK
    return MEMORY if best[1] in _IN_MEMORY else DISK


def on_one_disk(pack_folder: str, folder: str) -> bool:
    """Whether a copy in `folder` would be no nearer than the pack itself."""
    return os.stat(pack_folder).st_dev == os.stat(folder).st_dev
