"""What rabaska keeps on a cluster, and which of it nothing needs any more."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

KINDS = ("packs", "code", "envs", "node", "runs")
_LEFT_OVER = timedelta(days=1)  # after which something half written has been given up
_DAYS = {"d": 1, "day": 1, "w": 7, "week": 7, "month": 30}


@dataclass(frozen=True)
class Kept:
    """One thing in the store: a pack, a snapshot, an environment, our program, or a run."""

    kind: str
    name: str
    size: int  # bytes
    files: int
    written: float  # seconds since 1970

    @property
    def stem(self) -> str:
        """Its digest or name, as the plans and scripts of runs spell it."""
        return self.name.partition(".")[0] if self.kind != "packs" else self.name

    @property
    def path(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True)
class Told:
    """A run that is not finished: all that it was submitted with, as text."""

    run: str
    text: str  # its plan and its scripts; empty when they could not be read


def unneeded(kept: Iterable[Kept], unfinished: Sequence[Told], now: float) -> tuple[Kept, ...]:
    """What no unfinished run speaks of. Runs themselves are never among it.

    A run whose plan cannot be read may need anything, so then nothing is.
    """
    if any(not each.text for each in unfinished):
        return ()
    return tuple(each for each in kept if _is_unneeded(each, unfinished, now))


def _is_unneeded(each: Kept, unfinished: Sequence[Told], now: float) -> bool:
    if each.kind == "runs":
        return False
    old = now - each.written > _LEFT_OVER.total_seconds()
    if each.name.endswith(".partial"):
        return old
    return old and not any(each.stem in told.text for told in unfinished)


def purge_day(purge: str, written: float) -> str:
    """The day on which a site may delete what was written then: `60 d`, `8 weeks`, `2 months`."""
    found = re.search(r"(\d+) ?(d|day|w|week|month)s?\b", purge)
    if not found:
        return ""
    span = timedelta(days=int(found[1]) * _DAYS[found[2]])
    return (datetime.fromtimestamp(written, UTC) + span).strftime("%Y-%m-%d")
