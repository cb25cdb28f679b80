"""Numbers over time, as curves: joined over the jobs of a run, thinned for a screen, smoothed."""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


def _empty() -> "array[float]":
    return array("d")


@dataclass(frozen=True)
class Curve:
    """One series; its three arrays are of the same length."""

    name: str
    source: str = ""  # where it was found; of vitals, the unit
    steps: "array[float]" = field(default_factory=_empty)  # nan where none was told
    times: "array[float]" = field(default_factory=_empty)  # seconds since 1970
    values: "array[float]" = field(default_factory=_empty)  # also nan and infinite

    def __len__(self) -> int:
        return len(self.values)

    @property
    def has_steps(self) -> bool:
        """Whether its points can be put in order by their steps."""
        return bool(self.steps) and not math.isnan(self.steps[0]) and not math.isnan(self.steps[-1])

    @property
    def newest(self) -> float | None:
        return self.values[-1] if self.values else None

    def part(self, start: int, end: int) -> "Curve":
        return Curve(
            self.name,
            self.source,
            self.steps[start:end],
            self.times[start:end],
            self.values[start:end],
        )


def joined(jobs: Sequence[Curve]) -> Curve:
    """One curve of what each job of a run told of it, in the order of the jobs.

    What a job repeats, for it resumed from a checkpoint, replaces what an earlier one told of the
    same steps: no gap, and no step twice.
    """
    told = [curve for curve in jobs if len(curve)]
    if len(told) < 2:
        return told[0] if told else jobs[0]
    parts: list[Curve] = []
    first = math.inf  # the least step that a later job began with
    for curve in reversed(told):
        parts.append(_before(curve, first))
        if curve.has_steps:
            first = min(first, curve.steps[0])
    whole = Curve(told[-1].name, told[-1].source)
    for part in reversed(parts):
        whole.steps.extend(part.steps)
        whole.times.extend(part.times)
        whole.values.extend(part.values)
    return whole


def _before(curve: Curve, step: float) -> Curve:
    if not curve.has_steps or curve.steps[-1] < step:
        return curve
    return curve.part(0, bisect_left(curve.steps, step))


def thinned(
    curve: Curve,
    points: int,
    low: float | None = None,
    high: float | None = None,
    *,
    by_time: bool = False,
) -> Curve:
    """At most about so many points of the curve, between `low` and `high`, with every peak.

    Of each stretch its least and its greatest value are kept, and one that is no number. The
    range is of steps, or of times with `by_time` and where there are none.
    """
    start, end = _range(curve, low, high, by_time=by_time)
    if end - start <= max(points, 2):
        return curve if end - start == len(curve) else curve.part(start, end)
    chosen = _picked(curve.values, start, end, max(1, points // 2))
    return Curve(
        curve.name,
        curve.source,
        array("d", (curve.steps[place] for place in chosen) if curve.steps else ()),
        array("d", (curve.times[place] for place in chosen)),
        array("d", (curve.values[place] for place in chosen)),
    )


def _range(
    curve: Curve, low: float | None, high: float | None, *, by_time: bool
) -> tuple[int, int]:
    """Of the range, and one point more at each side, so that lines go on to the edge."""
    axis = curve.steps if curve.has_steps and not by_time else curve.times
    start = 0 if low is None else max(0, bisect_left(axis, low) - 1)
    end = len(axis) if high is None else min(len(axis), bisect_right(axis, high) + 1)
    return start, max(start, end)


def _picked(values: "array[float]", start: int, end: int, stretches: int) -> list[int]:
    chosen = [start]
    for number in range(stretches):
        first = start + (end - start) * number // stretches
        last = start + (end - start) * (number + 1) // stretches
        chosen += (place for place in _extremes(values, first, last) if place > chosen[-1])
    if chosen[-1] != end - 1:
        chosen.append(end - 1)
    return chosen


def _extremes(values: "array[float]", first: int, last: int) -> list[int]:
    """Where the least and the greatest value of a stretch are, and the first that is no number."""
    stretch = values[first:last]
    if not stretch:
        return []
    if math.isnan(sum(stretch)):  # also of infinite ones of both signs
        odd = next((at for at, value in enumerate(stretch) if math.isnan(value)), None)
        numbers = [(value, at) for at, value in enumerate(stretch) if not math.isnan(value)]
        found = {min(numbers)[1], max(numbers)[1]} if numbers else set()
        return sorted(first + at for at in found | ({odd} if odd is not None else set()))
    low, high = stretch.index(min(stretch)), stretch.index(max(stretch))
    return sorted({first + low, first + high})


_BARS = "▁▂▃▄▅▆▇█"


def spark_line(values: Sequence[float | None], width: int = 40) -> str:
    """The course of a series in letters; a gap where it is no finite number."""
    count = min(width, len(values))
    places = [
        range(len(values) * at // count, len(values) * (at + 1) // count) for at in range(count)
    ]
    means = [_mean([values[place] for place in stretch]) for stretch in places]
    finite = [mean for mean in means if mean is not None]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if mean is None else _BARS[round((mean - low) * scale)] for mean in means)


def _mean(values: Sequence[float | None]) -> float | None:
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return sum(finite) / len(finite) if finite else None


def smoothed(values: Sequence[float], weight: float) -> "array[float]":
    """The moving average that TensorBoard draws: `weight` from 0, as it is, to nearly 1.

    What is no finite number stays as it is, and does not count.
    """
    if not 0 < weight < 1:
        return array("d", values)
    return array("d", _averages(values, weight))


def _averages(values: Sequence[float], weight: float) -> Iterator[float]:
    last, share = 0.0, 1.0
    for value in values:
        if math.isfinite(value):
            last = last * weight + (1 - weight) * value
            share *= weight
            yield last / (1 - share)
        else:
            yield value
