"""The verdict of a rehearsal: whether interrupted runs ended like one that was not interrupted."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from rabaska.domain.resume_faults import Fault, fault
from rabaska.node.record.plan import ASK, KILL, KILL_WHILE_SAVING, PlannedInterruption

EXACT = "exact"
CLOSE = "close"
BROKEN = "broken"

_ROUNDING = 1e-3  # of a loss; another order of additions changes less than that
_NOISE = 3.0  # times what two starts of the program differ by anyway

Curve = Mapping[int, float]  # step → loss


@dataclass(frozen=True)
class Stretch:
    """What one job of an interrupted run did."""

    job: int
    curve: Curve
    how: str = ""  # it was cut off: kill, kill while saving, ask; "" when it was not
    resumed_from: str = ""  # the checkpoint it was given
    saved: bool = False  # it left a complete checkpoint
    lost: str = ""  # a checkpoint it found half-written, though nobody damaged it on purpose
    damaged: bool = False  # its newest checkpoint was damaged on purpose afterwards
    failed: str = ""  # the last words of a program that nobody interrupted


@dataclass(frozen=True)
class Interrupted:
    """A run that was cut off here and there."""

    run: str
    stretches: tuple[Stretch, ...]
    same_end: bool | None = None  # its last tensors are those of the reference; None: not known

    @property
    def curve(self) -> Curve:
        """What counts in the end: a step that was made again has its last loss."""
        return {step: loss for stretch in self.stretches for step, loss in stretch.curve.items()}

    @property
    def pairs(self) -> Iterator[tuple[Stretch, Stretch]]:
        """Each job with the one that went on after it."""
        return zip(self.stretches, self.stretches[1:], strict=False)

    @property
    def resumed(self) -> tuple[Stretch, ...]:
        return tuple(stretch for stretch in self.stretches[1:] if stretch.resumed_from)


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds, as far as can be told without loading it."""

    readable: bool = False
    optimizer: bool = False
    scheduler: bool = False
    random: bool = False


@dataclass(frozen=True)
class Used:
    """What the program's source uses and a checkpoint must therefore hold."""

    optimizer: str = ""  # the place in the source; "" where it was not found
    scheduler: str = ""
    order: str = ""  # samples shuffled by a generator that nobody seeds for the epoch
    random: str = ""  # dropout, augmentation


@dataclass(frozen=True)
class Difference:
    step: int
    expected: float
    found: float

    @property
    def relative(self) -> float:
        size = max(abs(self.expected), abs(self.found))
        return abs(self.found - self.expected) / size if size else 0.0


@dataclass(frozen=True)
class RehearsalVerdict:
    word: str
    compared: int  # losses
    faults: tuple[Fault, ...] = ()
    first: Difference | None = None
    largest: Difference | None = None
    advice: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        return self.word == BROKEN


def judge(
    reference: Curve, runs: Sequence[Interrupted], saved: Saved, used: Used
) -> RehearsalVerdict:
    """The verdict, with every fault there is evidence for."""
    differing = [difference for run in runs for difference in differences(reference, run.curve)]
    first = min(differing, key=lambda difference: difference.step, default=None)
    largest = max(differing, key=lambda difference: difference.relative, default=None)
    faults = tuple({fault.name: fault for fault in _faults(reference, runs, saved, used)}.values())
    if any(fault.serious for fault in faults):
        word = BROKEN
    elif differing or faults or any(run.same_end is False for run in runs):
        word = CLOSE
    else:
        word = EXACT
    compared = sum(len(reference.keys() & run.curve.keys()) for run in runs)
    return RehearsalVerdict(word, compared, faults, first, largest, tuple(_advice(runs)))


def differences(reference: Curve, curve: Curve) -> list[Difference]:
    common = sorted(reference.keys() & curve.keys())
    return [
        Difference(step, reference[step], curve[step])
        for step in common
        if reference[step] != curve[step]
    ]


def _faults(
    reference: Curve, runs: Sequence[Interrupted], saved: Saved, used: Used
) -> Iterator[Fault]:
    if not any(stretch.saved for run in runs for stretch in run.stretches):
        yield fault("never saves")
        return
    yield from _faults_at_ends(runs)
    resumed = [stretch for run in runs for stretch in run.resumed if stretch.curve]
    yield from _lost_counter(reference, resumed)
    noise = _mean_difference(reference, [run.stretches[0].curve for run in runs if run.stretches])
    after = _mean_difference(reference, [stretch.curve for stretch in resumed])
    if noise > 0:
        missing = _missing_parts(saved, used)  # which such losses can neither prove nor hide
        yield from [fault("not seeded"), *missing]
        if after > _NOISE * noise and not missing:
            yield fault("unknown")
    elif after > 0:
        yield from _state_faults(reference, resumed, saved, used)


def _faults_at_ends(runs: Sequence[Interrupted]) -> Iterator[Fault]:
    """Jobs that could not go on at all."""
    for run in runs:
        for before, after in run.pairs:
            if after.lost and not after.resumed_from:
                yield fault("half-written", after.lost)
            if after.failed and not before.damaged:
                yield fault("fails", after.failed)


def _lost_counter(reference: Curve, resumed: Sequence[Stretch]) -> Iterator[Fault]:
    """Jobs that counted from the beginning although they were given a checkpoint."""
    start = min(reference, default=0)
    for stretch in resumed:
        if min(stretch.curve) > start or len(reference) == 1:
            continue
        same = stretch.curve[min(stretch.curve)] == reference.get(start)
        yield fault("not taken up" if same else "place lost", stretch.resumed_from)


def _state_faults(
    reference: Curve, resumed: Sequence[Stretch], saved: Saved, used: Used
) -> Iterator[Fault]:
    """What is missing, when the program does the same at each start and yet another after a cut.

    The first loss after a resume is computed before the optimizer changes anything: if it is
    right, so are weights, data and random numbers.
    """
    missing = _missing_parts(saved, used)
    yield from missing
    at_once = any(
        stretch.curve[step] != reference.get(step, stretch.curve[step])
        for stretch in resumed
        for step in [min(stretch.curve)]
        if step > min(reference)
    )
    yield from _random_faults(saved, used) if at_once else ()
    explained = missing or (at_once and (used.order or used.random))
    largest = max(
        (d.relative for stretch in resumed for d in differences(reference, stretch.curve)),
        default=0.0,
    )
    if not explained and largest > _ROUNDING:
        yield fault("unknown")


def _missing_parts(saved: Saved, used: Used) -> list[Fault]:
    """The parts that the program uses and its checkpoint, if it can be read, does not hold."""
    parts = (
        ("optimizer", used.optimizer, saved.optimizer),
        ("scheduler", used.scheduler, saved.scheduler),
    )
    if not saved.readable:
        return []
    return [fault(name, place) for name, place, held in parts if place and not held]


def _random_faults(saved: Saved, used: Used) -> Iterator[Fault]:
    if used.order:
        yield fault("data order", used.order)
    elif used.random and not saved.random:
        yield fault("random state", used.random)


def _mean_difference(reference: Curve, curves: Sequence[Curve]) -> float:
    """How far curves are from the reference, on average over the steps they share with it."""
    apart = [
        abs(reference[step] - curve[step])
        for curve in curves
        for step in reference.keys() & curve.keys()
    ]
    return sum(apart) / len(apart) if apart else 0.0


def _advice(runs: Sequence[Interrupted]) -> Iterator[str]:
    after_damage = [after for run in runs for before, after in run.pairs if before.damaged]
    if any(stretch.failed for stretch in after_damage):
        yield (
            "damage to a checkpoint of this format cannot be detected, and the program failed "
            "on it; in the formats of torch.save, safetensors and NumPy it can"
        )
    elif any(not stretch.resumed_from for stretch in after_damage):
        yield (
            "the damaged checkpoint was the only one, so the run started over; keep the last two"
        )


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


def planned(course: Course, count: int, seed: int) -> list[list[PlannedInterruption]]:
    """The cuts of each interrupted run; `count` in all."""
    chance = random.Random(seed)  # noqa: S311 (nothing is kept secret here)
    kinds = [_KINDS[number % len(_KINDS)] for number in range(count)]
    return [_cuts_of_run(kinds[first::_RUNS], course, chance) for first in range(min(_RUNS, count))]


def _cuts_of_run(
    kinds: Sequence[tuple[str, bool]], course: Course, chance: random.Random
) -> list[PlannedInterruption]:
    # What is damaged comes last: a run that must start over would show nothing of later cuts.
    ordered = sorted(kinds, key=lambda kind: kind[1])
    width = (_TO - _FROM) / len(ordered)
    cuts = [
        _cut_between(_FROM + number * width, _FROM + (number + 1) * width, course, chance)._replace(
            how=how, damage=damage
        )
        for number, (how, damage) in enumerate(ordered)
    ]
    if not course.finished and course.steps:
        cuts.append(
            PlannedInterruption(ASK, course.steps[-1], course.steps[-1], 0.0)
        )  # no further than that one
    return cuts


def _cut_between(
    first: float, last: float, course: Course, chance: random.Random
) -> PlannedInterruption:
    share = chance.uniform(first, (first + last) / 2)
    if not course.steps:
        return PlannedInterruption(KILL, None, None, share * course.took.total_seconds())
    end = len(course.steps) - 1
    return PlannedInterruption(
        KILL, course.steps[int(share * end)], course.steps[int(last * end)], 0.0
    )
