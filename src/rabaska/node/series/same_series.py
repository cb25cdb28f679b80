"""Whether two series are one number in two places, such as a loss that is logged and printed."""

import re
from decimal import Decimal
from typing import Dict, List, Optional, Sequence

RECENT = 512  # newest points by which series are compared
ENOUGH = 2  # points that agree
_AGAINST = 3  # points that do not

# What is found in several places is taken from the first of these.
RANKS = ("json lines", "tensorboard", "wandb", "csv", "trainer_state.json", "printed")

_SHORT = {
    "validation": "val", "valid": "val", "eval": "val", "accuracy": "acc", "training": "train",
    "learning": "l", "lr": "rate",
}  # fmt: skip
_SPLITS = ("train", "val", "test", "dev")
_UNTOLD = ("step", "epoch", "avg", "mean")  # words that one place adds and another does not


def rank(kind: str) -> int:
    return RANKS.index(kind) if kind in RANKS else len(RANKS)


def words(name: str) -> List[str]:
    """`Train/Loss_step` and `train_loss` have the same words."""
    found = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    return [_SHORT.get(word, word) for word in found if word not in _UNTOLD]


def may_be_same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether names of these words could mean one number: `loss` may be `train/loss`."""
    short, long = sorted((set(one), set(other)), key=len)
    return short <= long and _measure(one) == _measure(other) != ""


def _measure(name: Sequence[str]) -> str:
    """What is measured: `loss` of `train/loss` and of `Loss/train`."""
    return next((word for word in reversed(name) if word not in _SPLITS), "")


def agree(one: float, other: float) -> bool:
    """Whether two numbers are one, the shorter of them rounded."""
    if one == other or (one != one and other != other):
        return True
    if one - other in (float("inf"), float("-inf")) or one != one or other != other:
        return False
    unit = max(_unit(one), _unit(other))
    return abs(one - other) <= max(0.51 * unit, 2e-7 * max(abs(one), abs(other)))


def _unit(value: float) -> float:
    """Of the last digit that a number is written with."""
    return float(10.0 ** int(Decimal(repr(value)).as_tuple().exponent))


class Evidence:
    """What two series have shown of being one."""

    def __init__(self) -> None:
        self.agreed = 0
        self.differed = 0

    def count(self, same: bool) -> None:
        self.agreed += same
        self.differed += not same

    def verdict(self) -> Optional[bool]:
        """None while there is too little to say."""
        if self.agreed >= ENOUGH and self.agreed >= 9 * self.differed:
            return True
        return False if self.differed >= _AGAINST else None


def is_same_run(one: Dict[float, float], other: Dict[float, float]) -> bool:
    """Whether the last three values of one stand in the other in their order.

    So it is where one place counts steps and the other epochs. Values that repeat prove nothing.
    """
    for first, second in ((one, other), (other, one)):
        left = list(first.values())[-3:]
        if len(set(left)) < 3:
            continue
        for value in second.values():
            if left and agree(left[0], value):
                left.pop(0)
        if not left:
            return True
    return False
