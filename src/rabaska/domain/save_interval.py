"""Whether jobs of a given length make progress, from how an earlier run of the program saved."""

from dataclasses import dataclass
from datetime import timedelta

from rabaska.domain.amounts import say_duration, say_seconds

_ALONE = "let one job do it all: `--jobs 1 --at-most 1` with a longer `--walltime`"
_SPARE = 1.1  # of what was measured: a slower node, a full disk


@dataclass(frozen=True)
class Saving:
    """How the last job of a run saved; seconds, and None for what was not seen."""

    run: str
    code: str  # digest of its snapshot: another program may save otherwise
    command: tuple[str, ...]
    starting: float = 0.0  # before it trained
    every: float | None = None  # from one save to the next; 0: whenever it is asked to
    epoch: float | None = None
    unsaved: float | None = None  # that a job had, at whose end nothing was saved
    over: str = ""  # what showed that a job started over
    begins_again: str = ""  # why each job would begin the training again
    resume: tuple[str, ...] | None = None  # words added to the command; None: not told


@dataclass(frozen=True)
class Standstill:
    why: str
    remedy: str
    certain: bool = True  # else it may save in between, where nobody looked so long
    over: bool = False  # each job begins the training again


def standstill(seen: Saving, walltime: timedelta, grace: timedelta) -> Standstill | None:
    """Why jobs of this length end before the program saves; None when they need not."""
    if seen.over:
        why = f"{seen.run} started over: {seen.over}"
        return Standstill(why, f"change that, or {_ALONE}", over=True)
    given = (walltime - grace).total_seconds()
    usable = given - seen.starting
    has = f"a job of {say_duration(walltime)} has {say_seconds(max(0.0, usable))} for training"
    if seen.every and seen.every > usable:
        why = f"{seen.run} saved every {say_seconds(seen.every)}, and {has}"
        return Standstill(why, _longer(seen.every, seen, grace))
    if seen.unsaved and seen.unsaved >= given:
        why = f"{seen.run} saved nothing in {say_seconds(seen.unsaved)}, and {has}"
        return Standstill(why, _longer(max(seen.unsaved, seen.epoch or 0.0), seen, grace))
    if seen.every is None and seen.epoch and seen.epoch > usable:
        why = f"an epoch of {seen.run} took {say_seconds(seen.epoch)}, and {has}"
        return Standstill(why, _longer(seen.epoch, seen, grace), certain=False)
    return None


def _longer(interval: float, seen: Saving, grace: timedelta) -> str:
    if seen.begins_again:
        return f"{seen.begins_again}, so {_ALONE}, or make it load its checkpoint"
    needed = timedelta(seconds=seen.starting + _SPARE * interval) + grace
    minutes = -(-needed // timedelta(minutes=1))
    limit = f"{-(-needed // timedelta(seconds=1))}s" if minutes < 2 else f"{minutes}m"
    return f"save more often, or give each job more time: `--walltime {limit}`"
