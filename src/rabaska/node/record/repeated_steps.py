"""Whether the numbers that a job counted are those of earlier jobs again, one after another.

The first number proves little: programs number their stages (`Step 1: preparing data`), evaluate
before they train (`step 0`) and print their settings (`epoch: 0`) in each job, also where they go
on properly. What shows is what comes after it: the numbers of the first job, or a jump past them.
"""

from typing import List, NamedTuple, Sequence

# What a sequence of numbers shows that begins where the first job's did.
JUMPS = "jumps"  # past what earlier jobs counted
REPEATS = "repeats"  # what they counted, one after another
ALONE = "alone"  # there is one number only
MIXED = "mixed"

_FAR = 2.5  # times the usual distance from one number to the next


class Jump(NamedTuple):
    start: float
    end: float
    skipped: int  # numbers of earlier jobs in between


def landing(own: Sequence[float], first: Sequence[float], earlier: Sequence[float]) -> float:
    """The number after the jump; that with which `own` begins, if it makes none."""
    known = sorted(set(first) | set(earlier))
    jumps = [_jump(pair[0], pair[1], known) for pair in zip(own, own[1:])]
    return next((jump.end for jump in jumps if _is_far(jump, own, first)), own[0])


def compared(own: Sequence[float], first: Sequence[float], earlier: Sequence[float]) -> str:
    """What `own`, which rises, shows beside those of the `first` job and of an `earlier` one."""
    if len(own) < 2:
        return ALONE
    known = sorted(set(first) | set(earlier))
    jumps = [_jump(pair[0], pair[1], known) for pair in zip(own, own[1:])]
    if any(_is_far(jump, own, first) for jump in jumps):
        return JUMPS
    again = [number for number in own if number <= known[-1]]
    skips = any(jump.skipped for jump in jumps)
    # Who prints by the clock meets other numbers each time, and misses some.
    if skips and set(again) <= set(known):
        return MIXED
    widest = max(_gaps(first), default=0.0)
    return REPEATS if len(again) > 1 and again[-1] - again[0] >= widest else MIXED


def _jump(start: float, end: float, known: List[float]) -> Jump:
    return Jump(start, end, sum(start < number < end for number in known))


def _is_far(jump: Jump, own: Sequence[float], first: Sequence[float]) -> bool:
    after = [number for number in own if number >= jump.end]
    usual = _median(_gaps(after)) or _median(_gaps(first))
    return jump.skipped > 1 and jump.end - jump.start >= _FAR * usual


def _gaps(numbers: Sequence[float]) -> List[float]:
    return [after - before for before, after in zip(numbers, numbers[1:])]


def _median(numbers: List[float]) -> float:
    return sorted(numbers)[len(numbers) // 2] if numbers else 0.0
