"""Where a rehearsal interrupts its runs: at random, and the same for the same seed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from rabaska.node.record.plan import ASK, KILL, KILL_WHILE_SAVING, Cut

# The part of a run in which it is cut: not before it has saved, nor when it is nearly over.
_FROM, _TO = 0.15, 0.85
_RUNS = 2
# Which cut comes first, when only a few are asked for; they are dealt out to the runs in turn.
_KINDS = ((KILL, False), (KILL, True), (ASK, False), (KILL_WHILE_SAVING, False))


@dataclass(frozen=True)
class Course:
    """How the uninterrupted run went."""

    steps: Sequence[int]  # that it told of, in order
    took: timedelta
    finished: bool  # by itself, rather than at the time limit


def planned(course: Course, count: int, seed: int) -> list[list[Cut]]:
    """The cuts of each interrupted run; `count` in all."""
    chance = random.Random(seed)  # noqa: S311 (nothing is kept secret here)
    kinds = [_KINDS[number % len(_KINDS)] for number in range(count)]
    return [_of_one_run(kinds[first::_RUNS], course, chance) for first in range(min(_RUNS, count))]


def _of_one_run(
    kinds: Sequence[tuple[str, bool]], course: Course, chance: random.Random
) -> list[Cut]:
    # What is damaged comes last: a run that must begin anew would tell nothing of later cuts.
    ordered = sorted(kinds, key=lambda kind: kind[1])
    width = (_TO - _FROM) / len(ordered)
    cuts = [
        _between(_FROM + number * width, _FROM + (number + 1) * width, course, chance)._replace(
            how=how, damage=damage
        )
        for number, (how, damage) in enumerate(ordered)
    ]
    if not course.finished and course.steps:
        cuts.append(Cut(ASK, course.steps[-1], course.steps[-1], 0.0))  # no further than that one
    return cuts


def _between(first: float, last: float, course: Course, chance: random.Random) -> Cut:
    share = chance.uniform(first, (first + last) / 2)
    if not course.steps:
        return Cut(KILL, None, None, share * course.took.total_seconds())
    end = len(course.steps) - 1
    return Cut(KILL, course.steps[int(share * end)], course.steps[int(last * end)], 0.0)
