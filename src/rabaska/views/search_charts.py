"""A search as charts: what was tried, what each trial reached, and which parameters matter."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rabaska.domain.search import FINISHED, SearchStatus, Trial
from rabaska.node.search.trial_run import as_text

NUMBER, LOG, CHOICE = "number", "log", "choice"
MOST_DRAWN = 2000  # trials in one chart; of more the best are drawn
ENOUGH = 10  # trials from which it can be said which parameter matters
_MOST_BINS = 8
_IN_A_BIN = 5  # trials
_FAR = 10  # times the distance of the quartiles: a trial that diverged must not flatten the rest
_WIDE = 1000  # a factor that needs a logarithmic scale


@dataclass(frozen=True)
class Scale:
    """The values of a parameter or of the metric, laid out from 0 to 1."""

    name: str
    kind: str  # NUMBER, LOG or CHOICE
    low: float = 0.0
    high: float = 1.0
    choices: tuple[str, ...] = ()

    def place(self, value: Any) -> float | None:
        """From 0 to 1; None where there is no value, or none that can be drawn."""
        if value is None:
            return None
        if self.kind == CHOICE:
            text = as_text(value)
            if text not in self.choices:
                return None
            return (self.choices.index(text) + 0.5) / len(self.choices)
        number = _number(value)
        if number is None or (self.kind == LOG and number <= 0):
            return None
        low, high, number = (self._shown(one) for one in (self.low, self.high, number))
        return min(1.0, max(0.0, (number - low) / (high - low))) if high > low else 0.5

    def _shown(self, value: float) -> float:
        return math.log10(value) if self.kind == LOG else value


@dataclass(frozen=True)
class TrialPoint:
    """A trial in a chart."""

    trial: Trial
    words: str  # `lr=0.003 depth=4`
    places: tuple[float | None, ...]  # of its values, on the scales of the parameters
    height: float | None  # of what it reached, on the scale of the metric
    rank: float | None  # from 0, the worst, to 1, the best


@dataclass(frozen=True)
class SearchCharts:
    metric: Scale
    parameters: tuple[Scale, ...]
    points: tuple[TrialPoint, ...]  # the best last, so that it is drawn over the others
    history: tuple[tuple[int, float], ...]  # after so many trials, the best value so far
    importance: tuple[tuple[str, float], ...]  # the greatest first; none before `ENOUGH` trials
    left_out: int = 0  # trials that are not drawn, for there are too many


def search_charts(found: SearchStatus) -> SearchCharts:
    metric = found.metric or next((name for one in found.trials for name in one.told), "")
    values = {one.number: _reached(one, metric) for one in found.trials}
    scale = metric_scale(metric, [value for value in values.values() if value is not None])
    names = dict.fromkeys((*found.space, *(key for one in found.trials for key in one.values)))
    scales = tuple(_parameter_scale(name, found.space.get(name), found.trials) for name in names)
    ranks = _ranks(found, values)
    drawn = sorted(found.trials, key=lambda one: ranks.get(one.number, -1.0))
    points = tuple(
        _point(one, scales, scale, values[one.number], ranks) for one in drawn[-MOST_DRAWN:]
    )
    return SearchCharts(
        metric=scale,
        parameters=scales,
        points=points,
        history=_history(found) if found.metric else (),
        importance=importance(found),
        left_out=max(0, len(drawn) - MOST_DRAWN),
    )


def _reached(trial: Trial, metric: str) -> float | None:
    """What counts of a trial; of one that is under way, what it reported last."""
    for value in (trial.value, trial.told.get(metric), *(value for _, value in trial.curve[-1:])):
        if value is not None and math.isfinite(value):
            return value
    return None


def _point(
    trial: Trial,
    scales: Sequence[Scale],
    metric: Scale,
    value: float | None,
    ranks: Mapping[int, float],
) -> TrialPoint:
    words = " ".join(f"{name}={as_text(given)}" for name, given in trial.values.items())
    places = tuple(scale.place(trial.values.get(scale.name)) for scale in scales)
    return TrialPoint(trial, words, places, metric.place(value), ranks.get(trial.number))


def _ranks(found: SearchStatus, values: Mapping[int, float | None]) -> dict[int, float]:
    known = [(value, number) for number, value in values.items() if value is not None]
    known.sort(reverse=found.goal == "min")
    # Trials that finished are better than those that did not: only they can be the best.
    finished = {one.number for one in found.trials if one.state == FINISHED}
    known.sort(key=lambda one: one[1] in finished)
    last = max(1, len(known) - 1)
    return {number: place / last for place, (_, number) in enumerate(known)}


def metric_scale(name: str, values: Sequence[float]) -> Scale:
    if not values:
        return Scale(name, NUMBER)
    ordered = sorted(values)
    low, high = ordered[0], ordered[-1]
    if low > 0 and high / low > _WIDE:
        return Scale(name, LOG, low, high)
    first, third = (ordered[int(share * (len(ordered) - 1))] for share in (0.25, 0.75))
    margin = _FAR * (third - first)
    if margin > 0:
        low, high = max(low, first - margin), min(high, third + margin)
    return Scale(name, NUMBER, low, high)


def _parameter_scale(name: str, given: Any, trials: Sequence[Trial]) -> Scale:
    if isinstance(given, Mapping):
        for kind, shown in (("log", LOG), ("float", NUMBER), ("int", NUMBER)):
            limits = given.get(kind)
            if isinstance(limits, Sequence) and len(limits) == 2:
                return Scale(name, shown, float(limits[0]), float(limits[1]))
        given = given.get("choice")
    tried = [one.values[name] for one in trials if name in one.values]
    if not isinstance(given, Sequence) and tried and all(_number(one) is not None for one in tried):
        return Scale(name, NUMBER, float(min(tried)), float(max(tried)))
    listed = given if isinstance(given, Sequence) and not isinstance(given, str) else ()
    return Scale(name, CHOICE, choices=tuple(dict.fromkeys(map(as_text, (*listed, *tried)))))


def _history(found: SearchStatus) -> tuple[tuple[int, float], ...]:
    ended = sorted((one for one in found.trials if one.ended), key=lambda one: one.ended or 0.0)
    better = max if found.goal == "max" else min
    best: float | None = None
    told = []
    for count, one in enumerate(ended, start=1):
        if one.state == FINISHED and one.value is not None and math.isfinite(one.value):
            best = one.value if best is None else better(best, one.value)
        if best is not None:
            told.append((count, best))
    return tuple(told)


def order_of_ends(found: SearchStatus) -> dict[int, int]:
    """The number of each trial that ended, and how many had ended with it."""
    ended = sorted((one for one in found.trials if one.ended), key=lambda one: one.ended or 0.0)
    return {one.number: count for count, one in enumerate(ended, start=1)}


def importance(found: SearchStatus) -> tuple[tuple[str, float], ...]:
    """How much of the differences between trials each parameter explains alone, from 0 to 1.

    Trials are grouped by their value of the parameter; what is told is the share of the variance
    that lies between the groups, less what chance would give (omega squared). Of the metric only
    the order counts, so that one trial that diverged does not decide it.
    """
    done = [one for one in found.trials if one.state == FINISHED and one.value is not None]
    done = [one for one in done if math.isfinite(one.value or 0.0)]
    if len(done) < ENOUGH or not found.metric:
        return ()
    done.sort(key=lambda one: one.value or 0.0)
    ranks = _middle_ranks([one.value or 0.0 for one in done])
    names = dict.fromkeys((*found.space, *(key for one in done for key in one.values)))
    told = [(name, _explained(_groups(name, done, found.space), ranks)) for name in names]
    return tuple(sorted(told, key=lambda one: -one[1]))


def _middle_ranks(ordered: Sequence[float]) -> list[float]:
    """Places in the order; those that are equal share one."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(ordered):
        places.setdefault(value, []).append(place)
    return [sum(places[value]) / len(places[value]) for value in ordered]


def _groups(name: str, trials: Sequence[Trial], space: Mapping[str, Any]) -> list[object]:
    """The group of each trial: its value, or a range of values that a few share."""
    values = [one.values.get(name) for one in trials]
    given = space.get(name)
    is_list = isinstance(given, Sequence) or (isinstance(given, Mapping) and "choice" in given)
    numbers = sorted({one for value in values if (one := _number(value)) is not None})
    if is_list or not numbers or len(numbers) <= _MOST_BINS:
        return [None if value is None else as_text(value) for value in values]
    told = sorted(one for value in values if (one := _number(value)) is not None)
    bins = max(2, min(_MOST_BINS, len(told) // _IN_A_BIN))
    edges = [told[len(told) * place // bins] for place in range(1, bins)]
    return [
        None if (number := _number(value)) is None else sum(number >= edge for edge in edges)
        for value in values
    ]


def _explained(groups: Sequence[object], ranks: Sequence[float]) -> float:
    mean = sum(ranks) / len(ranks)
    total = sum((rank - mean) ** 2 for rank in ranks)
    members: dict[object, list[float]] = {}
    for group, rank in zip(groups, ranks, strict=True):
        members.setdefault(group, []).append(rank)
    if total <= 0 or len(members) < 2 or len(ranks) <= len(members):
        return 0.0
    between = sum(len(own) * (sum(own) / len(own) - mean) ** 2 for own in members.values())
    chance = (total - between) / (len(ranks) - len(members))
    return max(0.0, (between - (len(members) - 1) * chance) / (total + chance))


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
