"""Which of a run's series a person looks at first."""

from typing import Iterable, Optional

from .same_series import words

_ORDER = ("loss", "losses", "nll", "perplexity", "ppl", "mse", "error", "acc", "reward", "return")


def main_metric(names: Iterable[str]) -> Optional[str]:
    """The loss of the training where there is one; else what comes nearest, else the first."""
    ordered = list(names)
    return min(ordered, key=lambda name: (_place(name), ordered.index(name)), default=None)


def _place(name: str) -> float:
    told = words(name)
    for place, word in enumerate(_ORDER):
        if word in told:
            held_out = bool({"val", "test", "dev"} & set(told))
            return place + 0.5 * held_out + 0.01 * len(told)
    return len(_ORDER) + 1.0
