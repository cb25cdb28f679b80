"""Repeats of the best trials with other seeds: mean, spread, and whether one of them wins."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rabaska.domain.search import FINISHED, SearchStatus, Trial

# Student's t for 95 % of both sides, by degrees of freedom from 1 on; then as for infinitely many.
_STUDENT = (
    12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
    2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04,
)  # fmt: skip
_MANY = 1.96


@dataclass(frozen=True)
class Repeated:
    """A trial with what its repeats gave; its own value, which made it one of the best, is not in.

    It was chosen because it is high, so it would make the mean too good.
    """

    trial: Trial
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def spread(self) -> float:
        """The standard deviation; 0 where there is one value."""
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    @property
    def error(self) -> float:
        """Of the mean, squared."""
        return self.spread**2 / len(self.values)


def repeated(found: SearchStatus) -> tuple[Repeated, ...]:
    """Trials that were repeated, the best mean first."""
    values: dict[int, list[float]] = {}
    for one in found.trials:
        if one.repeats and one.state == FINISHED and one.value is not None:
            values.setdefault(one.repeats, []).append(one.value)
    by_number = {one.number: one for one in found.trials}
    made = [
        Repeated(by_number[number], tuple(of_it))
        for number, of_it in values.items()
        if number in by_number
    ]
    better = 1 if found.goal == "max" else -1
    return tuple(sorted(made, key=lambda one: (-one.mean * better, one.trial.number)))


def rivals(ranked: Sequence[Repeated]) -> tuple[Repeated, ...]:
    """Those that may be as good as the first one, for all that their seeds show."""
    return tuple(one for one in ranked[1:] if not _differ(ranked[0], one))


def _differ(one: Repeated, other: Repeated) -> bool:
    """Welch's test for two means: whether their difference is more than chance, at 95 %."""
    if len(one.values) < 2 or len(other.values) < 2:
        return False
    error = one.error + other.error
    apart = abs(one.mean - other.mean)
    if error == 0:
        return apart > 0
    freedom = error**2 / (
        one.error**2 / (len(one.values) - 1) + other.error**2 / (len(other.values) - 1)
    )
    place = int(freedom) - 1
    limit = _STUDENT[max(0, place)] if place < len(_STUDENT) else _MANY
    return apart > limit * math.sqrt(error)


def mean_text(one: Repeated) -> str:
    return f"{one.mean:.6g} ± {one.spread:.2g}"
