"""Repeats: the best trials once more with other seeds, to tell a good choice from a lucky one.

A repeat is a trial with a number of its own, which names the trial that it repeats. It is begun
when all others are over, for only then the best are known.
"""

from typing import Any, Dict, List, NamedTuple

from .study import FINISHED, Settings, Trial


class Repeat(NamedTuple):
    of: Trial
    seed: int


def best(settings: Settings, ended: List[Trial], count: int) -> List[Trial]:
    """The best of those that finished and repeat no other."""

    def worth(trial: Trial) -> float:
        value = (trial.result or {}).get("value")
        return -float(value) * settings.better if isinstance(value, (int, float)) else float("inf")

    finished = [
        one for one in ended if not one.repeats and (one.result or {}).get("state") == FINISHED
    ]
    return sorted(finished, key=worth)[:count]


def missing(settings: Settings, trials: List[Trial]) -> List[Repeat]:
    """What nobody has begun yet, each of the best once before one of them is repeated again."""
    if not settings.seeds:
        return []
    begun = {(one.repeats, one.values.get(settings.seed_name)) for one in trials if one.repeats}
    chosen = best(settings, [one for one in trials if one.result], settings.repeat_best)
    return [
        Repeat(trial, seed)
        for seed in settings.seeds
        for trial in chosen
        if (trial.number, seed) not in begun
    ]


def values_of(settings: Settings, repeat: Repeat) -> Dict[str, Any]:
    return dict(repeat.of.values, **{settings.seed_name: repeat.seed})
