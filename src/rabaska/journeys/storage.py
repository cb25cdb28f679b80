"""Storage: what a cluster offers, what rabaska keeps there, and when the site deletes it."""

from dataclasses import dataclass

from rabaska.domain.clusters import Tier
from rabaska.domain.shell_words import expanding
from rabaska.domain.stored_items import StoredItem, purge_day
from rabaska.node.files import PARTIAL
from rabaska.records.home import Home
from rabaska.steps.connect import ConnectedCluster, connect
from rabaska.steps.store_contents import store_contents


@dataclass(frozen=True)
class Storage:
    cluster: str
    store: str
    tiers: tuple[Tier, ...]
    kept: tuple[StoredItem, ...]
    free: int  # bytes on the file system of the store
    purge: str  # what the site says of the store
    first_purge: str  # the day on which the oldest of it may go
    quota: str  # what the site's own command printed


def storage(on: str, home: Home) -> Storage:
    cluster = connect(on, home)
    everything, free = store_contents(cluster)
    kept = tuple(item for item in everything if not item.name.endswith(PARTIAL))
    tier = cluster.cluster.store_tier
    purge = tier.purge if tier else ""
    oldest = min((item.written for item in kept if item.kind != "runs"), default=0.0)
    return Storage(
        cluster=on,
        store=cluster.store,
        tiers=cluster.cluster.storage,
        kept=kept,
        free=free,
        purge=purge,
        first_purge=purge_day(purge, oldest) if oldest else "",
        quota=_quota(cluster),
    )


def _quota(cluster: ConnectedCluster) -> str:
    if not cluster.cluster.quota:
        return ""
    return cluster.place.run(
        f"cd {expanding(cluster.store)}; {cluster.cluster.quota}"
    ).output.strip()
