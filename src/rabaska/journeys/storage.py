"""Storage: what a cluster offers, what rabaska keeps there, and when the site deletes it."""

from dataclasses import dataclass

from rabaska.domain.clusters import Tier
from rabaska.domain.shell_words import expanding
from rabaska.domain.stored_items import KINDS, StoredItem, purge_day
from rabaska.domain.untrusted import TIME, count
from rabaska.node.files import PARTIAL
from rabaska.records.home import Home
from rabaska.remote.place import quoted
from rabaska.steps.connect import ConnectedCluster, connect

# One line for each thing: kilobytes, files, when it was written, kind, name.
_LIST = r"""
cd {store} || exit 0
for kind in {kinds}; do
  [ -d "$kind" ] || continue
  for path in "$kind"/*; do
    [ -e "$path" ] || continue
    size=$(du -sk "$path" | cut -f 1); files=$(find "$path" | wc -l)
    printf 'kept\t%s\t%s\t%s\t%s\n' "$size" "$files" "$(stat -c %Y "$path")" "$path"
  done
done
printf 'free\t%s\n' "$(df -Pk . | tail -n 1 | tr -s ' ' | cut -d ' ' -f 4)"
"""


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
    there = connect(on, home)
    everything, free = kept_there(there)
    kept = tuple(each for each in everything if not each.name.endswith(PARTIAL))
    tier = there.cluster.store_tier
    purge = tier.purge if tier else ""
    oldest = min((each.written for each in kept if each.kind != "runs"), default=0.0)
    return Storage(
        cluster=on,
        store=there.store,
        tiers=there.cluster.storage,
        kept=kept,
        free=free,
        purge=purge,
        first_purge=purge_day(purge, oldest) if oldest else "",
        quota=_quota(there),
    )


def kept_there(there: ConnectedCluster) -> tuple[tuple[StoredItem, ...], int]:
    """Everything in the store, and the bytes that are free beside it."""
    script = _LIST.format(store=quoted([there.store]), kinds=" ".join(KINDS))
    kept, free = [], 0
    for line in there.place.run(script).output.splitlines():
        cells = line.split("\t")
        numbers = [number for cell in cells[1:4] if (number := count(cell)) is not None]
        if cells[0] == "kept" and len(cells) == 5 and len(numbers) == 3 and TIME(numbers[2]):
            kind, _, name = cells[4].partition("/")
            size, files, written = numbers
            kept.append(StoredItem(kind, name, size * 1024, files, float(written)))
        elif cells[0] == "free" and numbers:
            free = numbers[-1] * 1024
    return tuple(kept), free


def _quota(there: ConnectedCluster) -> str:
    if not there.cluster.quota:
        return ""
    return there.place.run(f"cd {expanding(there.store)}; {there.cluster.quota}").output.strip()
