"""Early stopping: whether a trial goes on, given what others reported after as many reports.

A trial reports its metric several times, mostly once per epoch. All rules compare the best value
that a trial reported so far with what others had reported by then, and say why they stop it.
"""

import math
from typing import List, NamedTuple, Optional, Sequence

MEDIAN, ASHA, HYPERBAND, NONE = "median", "asha", "hyperband", "none"
_TRIALS_FIRST = 5  # that the median rule waits for


class Rule(NamedTuple):
    how: str  # MEDIAN, ASHA, HYPERBAND or NONE
    better: int  # 1 where more is better, else -1
    first: int = 1  # reports before which nothing is stopped
    reduction: int = 3  # of so many trials at a rung, one goes on


def best(reports: Sequence[float], count: int, better: int) -> Optional[float]:
    """The best of the first `count` reports; None if there are not so many, or none is a number."""
    if len(reports) < count:
        return None
    numbers = [one * better for one in reports[:count] if not math.isnan(one)]
    return max(numbers) * better if numbers else None


def why_stop(
    rule: Rule, number: int, reports: Sequence[float], others: Sequence[Sequence[float]]
) -> str:
    """Why trial `number` is stopped now; "" while it may go on. `others` are their reports."""
    count = len(reports)
    if rule.how == NONE or count < rule.first:
        return ""
    if not any(len(one) > count for one in others):
        return ""  # as far as anybody knows it is about to end by itself
    if rule.how == MEDIAN:
        return _below_median(rule, reports, others)
    rung = _rung(rule, number, count)
    return "" if rung is None else _below_rung(rule, reports, others, rung)


def _below_median(rule: Rule, reports: Sequence[float], others: Sequence[Sequence[float]]) -> str:
    count = len(reports)
    reached = [best(one, count, rule.better) for one in others]
    values = sorted(one for one in reached if one is not None)
    if len(values) < _TRIALS_FIRST:
        return ""
    middle = _median(values)
    own = best(reports, count, rule.better)
    if own is not None and (own - middle) * rule.better >= 0:
        return ""
    word = "below" if rule.better > 0 else "above"
    said = "after {} its best was {}, {} the median {:.6g} of {} trials"
    return said.format(_reports(count), _shown(own), word, middle, len(values))


def _below_rung(
    rule: Rule, reports: Sequence[float], others: Sequence[Sequence[float]], rung: int
) -> str:
    own = best(reports, rung, rule.better)
    reached = [best(one, rung, rule.better) for one in others]
    values = [one for one in reached if one is not None]
    # With fewer than `reduction` at a rung, only the best of them goes on.
    places = max(1, (len(values) + 1) // rule.reduction)
    ahead = sum(1 for one in values if own is None or (one - own) * rule.better > 0)
    if own is not None and ahead < places:
        return ""
    if not values:
        return "" if own is not None else "its metric is not a number"
    said = "after {} it was number {} of {} with {}; {} may go on"
    return said.format(_reports(rung), ahead + 1, len(values) + 1, _shown(own), places)


def _rung(rule: Rule, number: int, count: int) -> Optional[int]:
    """The rung that a trial with so many reports stands at; None between two.

    Reports come faster than anybody looks, so a rung that was passed meanwhile counts as well:
    the highest that is reached.
    """
    rung = rule.first * int(rule.reduction ** bracket(rule, number))
    if count < rung:
        return None
    while rung * rule.reduction <= count:
        rung *= rule.reduction
    return rung


def bracket(rule: Rule, number: int) -> int:
    """Hyperband runs several ASHAs, which stop later and later; most trials are in the first."""
    if rule.how != HYPERBAND:
        return 0
    turns = [0] * rule.reduction**2 + [1] * rule.reduction + [2]
    return turns[number % len(turns)]


def _median(values: List[float]) -> float:
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def _reports(count: int) -> str:
    return "1 report" if count == 1 else "{} reports".format(count)


def _shown(value: Optional[float]) -> str:
    return "nan" if value is None else "{:.6g}".format(value)
