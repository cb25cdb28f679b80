"""Why a run is slow, in words: what it loses time with, what shows it, and the line to change."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rabaska.domain.runs import RunState, RunStatus
from rabaska.views.words import NOTE, Remark

if TYPE_CHECKING:
    from rabaska.domain.run_measures import Bottleneck

NOTHING_SLOW = "Nothing slows it down that could be measured."
NOT_MEASURED = "It has not trained long enough to tell what slows it down."

_LEAST_GAIN = 1.02
_TRAINS = (RunState.RUNNING, RunState.FINISHED)


@dataclass(frozen=True)
class BottleneckView:
    kind: str
    what: str
    evidence: str
    remedy: str
    gain: str  # empty where nobody can say


def bottleneck_views(run: RunStatus) -> tuple[BottleneckView, ...]:
    """The most costly first."""
    if run.speed is None:
        return ()  # nothing was measured; then the rules are not loaded either
    from rabaska.domain.bottlenecks import bottlenecks
    from rabaska.domain.run_measures import measures

    return tuple(
        BottleneckView(one.kind, one.what, one.evidence, one.remedy, gain_in_words(one))
        for one in bottlenecks(measures(run))
    )


def gain_in_words(one: "Bottleneck") -> str:
    if one.gain is None or one.gain < _LEAST_GAIN:
        return ""
    return f"about {one.gain:.2g} times as fast"


def pace(run: RunStatus) -> str:
    """That nothing slows it down, or that it is too early to say; empty where something does."""
    if run.state not in _TRAINS or run.speed is None:
        return ""
    from rabaska.domain.bottlenecks import ENOUGH, bottlenecks
    from rabaska.domain.run_measures import measures

    measured = measures(run)
    if measured.seconds < ENOUGH:
        return NOT_MEASURED
    return "" if bottlenecks(measured) else NOTHING_SLOW


def remarks(run: RunStatus) -> Iterator[Remark]:
    """One line for `status`: the first of them, and where the rest is told."""
    if run.state not in _TRAINS:
        return
    for one in bottleneck_views(run)[:1]:
        gain = f"; that would be {one.gain}" if one.gain else ""
        yield Remark(NOTE, "slow", f"{one.what} ({one.evidence})", f"{one.remedy}{gain}")
