"""When to save and when to stop: arithmetic on seconds, without a clock of its own."""

import math
import os
from typing import Mapping, Optional

SHORTEST = 10.0  # seconds between two saves
LONGEST = 1800.0
BETWEEN_FAILURES = 24 * 3600.0  # seconds; what large clusters and their time limits come to
_SLURM_MARGIN = 60.0  # seconds before Slurm's own end


def interval(
    cost: float, between_failures: float = BETWEEN_FAILURES, writing: float = 0.0
) -> float:
    """Seconds between saves that lose least: √(2 · cost · time between failures), bounded.

    `cost` is what a save takes from the training. The writer is busy for a tenth of the time at
    most, however cheap a save is for the training.
    """
    best = math.sqrt(2.0 * max(cost, 0.0) * between_failures)
    return min(max(best, SHORTEST, 10.0 * writing), max(LONGEST, 10.0 * writing))


def deadline(environment: Mapping[str, str]) -> Optional[float]:
    """When this job should be asked to stop, in seconds since 1970, if anybody said so."""
    told = _number(environment.get("RABASKA_DEADLINE"))
    if told is not None:
        return told
    end = _number(environment.get("SLURM_JOB_END_TIME"))
    return None if end is None else end - _SLURM_MARGIN


def counted(deadline: Optional[float], now: float, counter: float) -> Optional[float]:
    """`deadline` by a counter that nobody sets; `now` is the time of day when it says `counter`."""
    return None if deadline is None else counter + deadline - now


def _number(text: Optional[str]) -> Optional[float]:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def time_to_stop(now: float, deadline: Optional[float], saving: float, step: float) -> bool:
    """Whether another step, and then a save, might not be done in time."""
    return deadline is not None and now + 3.0 * saving + step >= deadline


def own_deadline() -> Optional[float]:
    return deadline(os.environ)
