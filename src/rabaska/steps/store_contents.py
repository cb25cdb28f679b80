"""What rabaska keeps in the store of a cluster, and how much is free beside it."""

from rabaska.domain.stored_items import KINDS, StoredItem
from rabaska.domain.untrusted import TIME, count
from rabaska.remote.place import quoted
from rabaska.steps.connect import ConnectedCluster

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


def store_contents(cluster: ConnectedCluster) -> tuple[tuple[StoredItem, ...], int]:
    """Everything in the store, and the bytes that are free beside it."""
    script = _LIST.format(store=quoted([cluster.store]), kinds=" ".join(KINDS))
    kept, free = [], 0
    for line in cluster.place.run(script).output.splitlines():
        cells = line.split("\t")
        numbers = [number for cell in cells[1:4] if (number := count(cell)) is not None]
        if cells[0] == "kept" and len(cells) == 5 and len(numbers) == 3 and TIME(numbers[2]):
            kind, _, name = cells[4].partition("/")
            size, files, written = numbers
            kept.append(StoredItem(kind, name, size * 1024, files, float(written)))
        elif cells[0] == "free" and numbers:
            free = numbers[-1] * 1024
    return tuple(kept), free
