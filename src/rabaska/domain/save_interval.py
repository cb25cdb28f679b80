"""Whether jobs of a given length make progress, from how an earlier run of the program saved."""

from dataclasses import dataclass
from datetime import timedelta

from rabaska.domain.amounts import say_duration, say_seconds

_ALONE = "do all the training in one job: `--jobs 1 --at-most 1` with a longer `--walltime`"
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


def standstill(earlier: Saving, walltime: timedelta, grace: timedelta) -> Standstill | None:
    """Why jobs of this length end before the program saves; None when they need not."""
    if earlier.over:
        why = f"{earlier.run} started over: {earlier.over}"
        return Standstill(why, f"change that, or {_ALONE}", over=True)
    given = (walltime - grace).total_seconds()
    usable = given - earlier.starting
    has = f"a job of {say_duration(walltime)} has {say_seconds(max(0.0, usable))} for training"
    if earlier.every and earlier.every > usable:
        why = f"{earlier.run} saved every {say_seconds(earlier.every)}, and {has}"
        return Standstill(why, _longer(earlier.every, earlier, grace))
    if earlier.unsaved and earlier.unsaved >= given:
        why = f"{earlier.run} saved nothing in {say_seconds(earlier.unsaved)}, and {has}"
        return Standstill(why, _longer(max(earlier.unsaved, earlier.epoch or 0.0), earlier, grace))
    if earlier.every is None and earlier.epoch and earlier.epoch > usable:
        why = f"an epoch of {earlier.run} took {say_seconds(earlier.epoch)}, and {has}"
        return Standstill(why, _longer(earlier.epoch, earlier, grace), certain=False)
    return None


def _longer(interval: float, earlier: Saving, grace: timedelta) -> str:
    if earlier.begins_again:
        return f"{earlier.begins_again}, so {_ALONE}, or make it load its checkpoint"
    needed = timedelta(seconds=earlier.starting + _SPARE * interval) + grace
    minutes = -(-needed // timedelta(minutes=1))
    limit = f"{-(-needed // timedelta(seconds=1))}s" if minutes < 2 else f"{minutes}m"
    return f"save more often, or give each job more time: `--walltime {limit}`"
