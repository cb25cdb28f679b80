"""What rabaska keeps on a cluster, and which of it nothing needs any more."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

KINDS = ("packs", "code", "envs", "node", "downloads", "arriving", "runs")
_MAY_PAUSE = timedelta(days=7)  # what another program brings, by Globus for example
_LEFT_OVER = timedelta(days=1)  # after which something half written, or unused, was given up
_OLD = timedelta(days=30)  # for a run
_DAYS = {"d": 1, "day": 1, "w": 7, "week": 7, "month": 30}


@dataclass(frozen=True)
class StoredItem:
    """One thing in the store: a pack, a snapshot, an environment, our program, or a run."""

    kind: str
    name: str
    size: int  # bytes
    files: int
    written: float  # seconds since 1970; using it counts as writing it

    @property
    def stem(self) -> str:
        """Its digest or name, as the plans and scripts of runs spell it."""
        whole = self.kind in ("packs", "downloads", "arriving")
        return self.name if whole else self.name.partition(".")[0]

    @property
    def path(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True)
class StoreReport:
    """A run that is not finished: all that it was submitted with, as text."""

    run: str
    text: str  # its plan and its scripts; empty when they could not be read


def unneeded(
    kept: Iterable[StoredItem], unfinished: Sequence[StoreReport], now: float
) -> tuple[StoredItem, ...]:
    """What no unfinished run speaks of. Runs themselves are never among it.

    A run whose plan cannot be read may need anything, so then nothing is.
    """
    if any(not report.text for report in unfinished):
        return ()
    everything = tuple(kept)
    # An environment is several files of one stem, and the use of one is the use of all.
    used = {(item.kind, item.stem) for item in everything if _is_in_use(item, unfinished, now)}
    return tuple(item for item in everything if (item.kind, item.stem) not in used)


def old_runs(
    kept: Iterable[StoredItem], unfinished: Sequence[StoreReport], now: float
) -> tuple[StoredItem, ...]:
    """Runs that finished, and that nothing was written into for a month."""
    names = {report.run for report in unfinished}
    return tuple(
        item
        for item in kept
        if item.kind == "runs"
        and item.name not in names
        and not item.name.endswith(".partial")
        and now - item.written > _OLD.total_seconds()
    )


def _is_in_use(item: StoredItem, unfinished: Sequence[StoreReport], now: float) -> bool:
    spared = _MAY_PAUSE if item.kind == "arriving" else _LEFT_OVER
    if item.kind == "runs" or now - item.written <= spared.total_seconds():
        return True
    half_written = item.name.endswith(".partial")
    return not half_written and any(item.stem in report.text for report in unfinished)


def purge_span(purge: str) -> timedelta | None:
    """How long a site keeps what lies there: `60 d`, `8 weeks`, `2 months`; None: nobody says."""
    age = re.search(r"(\d+) ?(d|day|w|week|month)s?\b", purge)
    return timedelta(days=int(age[1]) * _DAYS[age[2]]) if age else None


def purge_day(purge: str, written: float) -> str:
    """The day on which a site may delete what was written then."""
    span = purge_span(purge)
    return (datetime.fromtimestamp(written, UTC) + span).strftime("%Y-%m-%d") if span else ""
