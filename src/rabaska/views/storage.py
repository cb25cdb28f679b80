"""A cluster's storage as people see it, and what can be deleted from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rabaska.domain.amounts import say_size
from rabaska.views.clusters import TierRow, tier_row
from rabaska.views.words import counted

if TYPE_CHECKING:
    from rabaska.domain.stored_items import StoredItem
    from rabaska.journeys.clean import Cleaning
    from rabaska.journeys.storage import Storage

# The headings of the fields of `KeptRow` and of `ItemRow`, in their order.
KEPT_HEADINGS = ("kept", "number", "size", "files")
ITEM_HEADINGS = ("", "size", "files")

_RUNS_NAMED = 5  # in one line


@dataclass(frozen=True)
class KeptRow:
    """Everything of one kind in the store."""

    kind: str
    number: int
    size: str
    files: int


@dataclass(frozen=True)
class StorageView:
    """The tiers of a cluster, what rabaska keeps there, and what the site says of it."""

    tiers: tuple[TierRow, ...]
    kept: tuple[KeptRow, ...]
    store: str
    purge: str
    quota: str


@dataclass(frozen=True)
class ItemRow:
    """Something in the store that can be deleted, or was."""

    path: str
    size: str
    files: int


@dataclass(frozen=True)
class CleanView:
    """What can be deleted, or was, and in one sentence what that means."""

    items: tuple[ItemRow, ...]
    summary: str
    old_runs: str = ""  # that `delete` would remove


def storage_view(storage: "Storage") -> StorageView:
    purge = ""
    if storage.purge and storage.purge != "never":
        first = f"; the oldest may be deleted on {storage.first_purge}"
        purge = f"the site deletes files there: {storage.purge}"
        purge += first if storage.first_purge else ""
    return StorageView(
        tiers=tuple(tier_row(tier) for tier in storage.tiers),
        kept=_kept_rows(storage.kept),
        store=f"in {storage.store}, {say_size(storage.free)} free on its file system",
        purge=purge,
        quota=storage.quota,
    )


def clean_view(cleaning: "Cleaning", *, preview: bool) -> CleanView:
    items = cleaning.unneeded if preview else cleaning.removed
    total = say_size(sum(item.size for item in items))
    if not items:
        summary = "nothing to clean"
    elif preview:
        summary = f"{total} can be deleted: `rabaska clean --on {cleaning.cluster} --yes`"
    else:
        summary = f"deleted {total}"
    rows = (ItemRow(item.path, say_size(item.size), item.files) for item in items)
    return CleanView(tuple(rows), summary, _old_runs(cleaning))


def _old_runs(cleaning: "Cleaning") -> str:
    runs = cleaning.old_runs
    if not runs:
        return ""
    names = " ".join(run.name for run in runs[:_RUNS_NAMED])
    more = " …" if len(runs) > _RUNS_NAMED else ""
    finished = f"{counted(len(runs), 'run')} finished more than 30 days ago"
    size = say_size(sum(run.size for run in runs))
    return f"{finished}, {size}: `rabaska delete --on {cleaning.cluster} {names}{more}`"


def _kept_rows(items: "Sequence[StoredItem]") -> tuple[KeptRow, ...]:
    kinds: dict[str, list[StoredItem]] = {}
    for item in items:
        kinds.setdefault(item.kind, []).append(item)
    return tuple(
        KeptRow(
            kind,
            len(group),
            say_size(sum(item.size for item in group)),
            sum(item.files for item in group),
        )
        for kind, group in kinds.items()
    )
