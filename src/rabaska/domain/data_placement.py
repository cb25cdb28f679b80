"""Where each dataset goes on its way to the program, and how long storage takes to read it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rabaska.domain.amounts import say_size
from rabaska.domain.clusters import Cluster, Partition, Tier

# The Alliance's advice: up to 10 GB in memory, up to 100 GB on the node, more in large shards.
_IN_MEMORY = 10 * 10**9
_ON_NODE = 100 * 10**9
_MEMORY_SHARE = 0.25  # of the job's: the program needs most of it
_NODES_SHARE = 0.8  # of its disk: other jobs use it too
_OF_USERS = {"USER", "LOGNAME"}  # variables that mean the same in every job of a user
_LARGE = 10**9  # bytes from which a pack is worth spreading over servers


@dataclass(frozen=True)
class Placement:
    """Where a dataset is kept, where it is read, and why."""

    dataset: str
    size: int
    kept: str
    read: str
    why: str
    stripe: str = ""  # the command that spreads its packs, where that helps


def place(
    datasets: Sequence[tuple[str, int]], cluster: Cluster, queue: Partition | None, memory: int
) -> tuple[Placement, ...]:
    return tuple(_placement(name, size, cluster, queue, memory) for name, size in datasets)


def _placement(
    name: str, size: int, cluster: Cluster, queue: Partition | None, memory: int
) -> Placement:
    """Where the job will find room for it, which looks again by itself."""
    kept = cluster.store or "rabaska's own folder"
    stripe, room = _stripe(size, cluster), _room(cluster, queue)
    if size <= _memory_room(cluster, memory):
        why = f"{say_size(size)} fits in memory together with the program"
        return Placement(name, size, kept, memory_folder(cluster), why, stripe)
    if size <= min(_ON_NODE, room * _NODES_SHARE if room else _ON_NODE):
        local = cluster.local_space or "the node's own disk"
        why = f"{say_size(size)}{f' of {say_size(room)}' if room else ''} on the node"
        return Placement(name, size, kept, local, why, stripe)
    why = f'{say_size(size)} is too large for a node: set `as = "shards"` to read it in place'
    return Placement(name, size, kept, kept, why, stripe)


def _memory_room(cluster: Cluster, memory: int) -> float:
    """Bytes of the job's memory that data may take, where the site has a folder for that."""
    tier = _memory_tier(cluster)
    if tier is None or not memory:
        return 0
    return min(_IN_MEMORY, memory * _MEMORY_SHARE, tier.size or _IN_MEMORY)


def _memory_tier(cluster: Cluster) -> Tier | None:
    names = ("ram", "ramdisk")
    return next((tier for tier in cluster.storage if tier.name in names and tier.path), None)


def memory_folder(cluster: Cluster) -> str:
    """The folder of its nodes that lies in memory; "" where there is none."""
    tier = _memory_tier(cluster)
    return tier.path if tier else ""


def shared_folder(cluster: Cluster) -> str:
    """The nodes' own storage, if all jobs of a user see the same; "" if each has a folder."""
    variables = set(re.findall(r"\$\{?(\w*)", cluster.local_space))
    return cluster.local_space if variables <= _OF_USERS else ""


def _room(cluster: Cluster, queue: Partition | None) -> int:
    if queue and queue.local:
        return queue.local
    return next((tier.size for tier in cluster.storage if tier.path == cluster.local_space), 0)


def _stripe(size: int, cluster: Cluster) -> str:
    """Four to eight servers and pieces of 1 MB were fastest (F. Mao, SHARCNET)."""
    if not cluster.striped or size < _LARGE:
        return ""
    return f"lfs setstripe -S 1m -c 4 {cluster.store}/packs"


_PAYS = 1.5  # an epoch must be that much shorter for packing to be worth the trouble
_LONG = 300.0  # seconds of staging that nobody wants to wait for
_MANY_FILES = 50_000


@dataclass(frozen=True)
class DatasetSize:
    files: int
    bytes: int


@dataclass(frozen=True)
class TierSpeed:
    """One kind of storage, as it was measured."""

    tier: str
    path: str = ""
    free: int = 0  # bytes
    files: int | None = None  # that may still be made
    write: float = 0.0  # bytes per second, one stream
    read: float = 0.0  # bytes per second, several streams
    seconds_to_make: float = 0.0  # a small file
    seconds_to_read: float = 0.0
    why: str = ""  # nothing was measured

    def epoch_of_files(self, data: DatasetSize) -> float:
        """Seconds to read everything once, one file after the other."""
        return data.files * self.seconds_to_read + data.bytes / self.read

    def epoch_of_shards(self, data: DatasetSize) -> float:
        return data.bytes / self.read

    def staged_as_files(self, data: DatasetSize) -> float:
        return data.files * self.seconds_to_make + data.bytes / self.write

    def staged_as_shards(self, data: DatasetSize) -> float:
        return data.bytes / self.write

    def packing_pays(self, data: DatasetSize) -> bool:
        return self.epoch_of_files(data) > _PAYS * self.epoch_of_shards(data)


def best_mode(data: DatasetSize, near: TierSpeed | None) -> str:
    """`files` needs no change of the program; `shards` where unpacking would take too long."""
    if data.files >= _MANY_FILES or (near and near.staged_as_files(data) > _LONG):
        return "shards"
    return "files"
