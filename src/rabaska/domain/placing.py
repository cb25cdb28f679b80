"""Where each dataset goes on its way to the program: memory, the node's disk, or shared storage."""

from collections.abc import Sequence
from dataclasses import dataclass

from rabaska.domain.amounts import say_size
from rabaska.domain.clusters import Cluster, Partition, Tier

# The Alliance's advice: up to 10 GB in memory, up to 100 GB on the node, more in large shards.
_IN_MEMORY = 10 * 10**9
_ON_NODE = 100 * 10**9
_NODES_SHARE = 0.8  # of its disk: other jobs use it too
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
    return tuple(_one(name, size, cluster, queue, memory) for name, size in datasets)


def _one(name: str, size: int, cluster: Cluster, queue: Partition | None, memory: int) -> Placement:
    """On the node where it fits: that is where jobs stage their data."""
    kept = cluster.store or "rabaska's own folder"
    stripe, room = _stripe(size, cluster), _room(cluster, queue)
    if size <= min(_ON_NODE, room * _NODES_SHARE if room else _ON_NODE):
        local = cluster.local_space or "the node's own disk"
        had = f" of {say_size(room)}" if room else ""
        why = f"{say_size(size)}{had} on the node{_in_memory(size, cluster, memory)}"
        return Placement(name, size, kept, local, why, stripe)
    why = f'{say_size(size)} are too much for a node: set `as = "shards"` and read them in place'
    return Placement(name, size, kept, kept, why, stripe)


def _in_memory(size: int, cluster: Cluster, memory: int) -> str:
    """That memory would hold it as well, where the site has a folder for that."""
    tier = _memory_tier(cluster)
    limit = min(_IN_MEMORY, memory // 2 if memory else _IN_MEMORY)
    if tier is None or size > min(limit, tier.size or limit):
        return ""
    return f'; it would fit in memory too: `local = "{tier.path}"` in a profile of your own'


def _memory_tier(cluster: Cluster) -> Tier | None:
    names = ("ram", "ramdisk")
    return next((each for each in cluster.storage if each.name in names and each.path), None)


def _room(cluster: Cluster, queue: Partition | None) -> int:
    if queue and queue.local:
        return queue.local
    return next((each.size for each in cluster.storage if each.path == cluster.local_space), 0)


def _stripe(size: int, cluster: Cluster) -> str:
    """Four to eight servers and pieces of 1 MB were fastest (F. Mao, SHARCNET)."""
    if not cluster.striped or size < _LARGE:
        return ""
    return f"lfs setstripe -S 1m -c 4 {cluster.store}/packs"
