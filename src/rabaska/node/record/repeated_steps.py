"""Whether the numbers that a job counted are those of earlier jobs again, one after another.

The first number proves little: programs number their stages (`Step 1: preparing data`), evaluate
before they train (`step 0`) and print their settings (`epoch: 0`) in each job, also where they go
on properly. What shows is what comes after it: the numbers of the first job, or a jump past them.
"""

from typing import List, NamedTuple, Optional, Sequence

from . import chain_rule, jobs, step_tracks
from .run_folder import RunFolder
from .step_tracks import Track

# What a track of a job shows.
CONTINUED = "continued"
STARTED_OVER = chain_rule.STARTED_OVER
UNKNOWN = ""
UNCLEAR = "mixed"  # of one track: it begins like the first job, and that proves nothing
_EPOCH_OVER = 0.97  # of an epoch: what was saved after so much of it was saved at its end

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


def compare_tracks(mine: Track, first: Optional[Track], last: Optional[Track]) -> str:
    if first is None:
        return UNKNOWN
    if mine.first <= first.first:
        return _begun_alike(mine, first, last)
    if not mine.weak:
        return CONTINUED
    # Numbers in names prove it where they follow at once: who starts over and deletes old files
    # would have to meet the very next one.
    if last is None or last.seen < 2 or not mine.what.startswith("number of "):
        return UNKNOWN
    gap = (last.last[0] - last.first[0]) / (last.seen - 1)
    return CONTINUED if 0 < mine.first[0] - last.last[0] <= gap else UNKNOWN


def _begun_alike(mine: Track, first: Track, last: Optional[Track]) -> str:
    """What a track shows that begins where the first job began, or before it."""
    if mine.what == step_tracks.WATCHED:
        return STARTED_OVER  # a framework's own word for where it began
    found = compared(_early(mine), _early(first), _early(last) if last else [])
    if found == ALONE and mine.inside and first.inside:
        found = compared(mine.inside, first.inside, last.inside if last else [])
    shown = {
        JUMPS: CONTINUED,
        REPEATS: STARTED_OVER,
        MIXED: UNCLEAR,
    }
    return shown.get(found, found)


def resumed_at(mine: Track, first: Optional[Track], last: Optional[Track]) -> Optional[float]:
    if mine.what != "step" or first is None or mine.first > first.first:
        return None
    return landing(_early(mine), _early(first), _early(last) if last else [])


def _early(track: Track) -> Sequence[float]:
    """Its first places; a record of an older version has only the ends."""
    return track.early or sorted({track.first[0], track.last[0]})


def first_number_proves(
    mine: Track, last: Optional[Track], begun: jobs.Begun, run: RunFolder
) -> bool:
    """Whether the only number that a job told was its first step, and not a stage or a setting."""
    if last is None or last.seen > 1:
        return last is not None and len(mine.first) > 1  # an epoch and a step of it
    return saved_after_first(last, begun, run)


def saved_after_first(last: Optional[Track], begun: jobs.Begun, run: RunFolder) -> bool:
    """Whether the checkpoint was saved after the place where the first job is first seen.

    Who prints every 100th step and saves every 70th may print step 100 in two jobs, rightly.
    """
    if last is not None and last.seen > 1:
        return True
    if begun.epoch is not None and begun.epoch >= _EPOCH_OVER:
        return True
    again = jobs.read_begun(run, begun.job - 1)
    return again is not None and again.checkpoint_seen is not None


def may_be_its_last_epoch(
    mine: Track, first: Optional[Track], last: Optional[Track], begun: jobs.Begun, run: RunFolder
) -> bool:
    """Whether a job that begins where the first one did may make the saved epoch once more.

    Who saves `epoch` rather than `epoch + 1` at the end of the first one holds its number, and
    begins with it again. Where the run had got beyond it, or comes back to it after another
    save, it has started over.
    """
    if not mine.what.startswith("epoch") or mine.what == step_tracks.WATCHED or first is None:
        return False
    before = jobs.read_begun(run, begun.job - 1)
    if before and before.checkpoint_seen and before.checkpoint_seen != begun.checkpoint_seen:
        return False
    epochs = _early(last or first)
    if len(epochs) < 2:
        return False  # it was saved within the first epoch: steps tell
    if begun.epoch is None:
        return len(epochs) == 2
    return begun.epoch - first.first[0] <= 1
