"""When a session saves and when it stops: decided by all ranks together, after the same step."""

import math
import operator
import os
import signal
import threading
import time
from datetime import timedelta
from types import FrameType
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from .errors import WrongUse
from .process_group import ProcessGroup

# Slurm and rabaska send TERM or USR1; where NCCL has taken USR1, sites send USR2.
ASKING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


class StopRequests:
    def __init__(self) -> None:
        self.by: Optional[str] = None  # the name of the signal that came
        self._before: Dict[int, Any] = {}

    def __bool__(self) -> bool:
        return self.by is not None

    def listen(self) -> None:
        """Only the main thread may; elsewhere the deadline and the periodic saves must do."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in ASKING:
            before = signal.getsignal(number)
            if number == signal.SIGTERM or before == signal.SIG_DFL:
                self._before[number] = before
                signal.signal(number, self._note)

    def _note(self, number: int, frame: Optional[FrameType]) -> None:
        self.by = signal.Signals(number).name
        before = self._before.get(number)
        if callable(before):
            before(number, frame)

    def stop_listening(self) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._note:
                signal.signal(number, before if before is not None else signal.SIG_DFL)
        self._before.clear()


def pass_over() -> None:
    """In a data loader's worker: what is meant for the training must not end or mislead it."""
    for number in ASKING[1:]:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


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
    given = _number(environment.get("RABASKA_DEADLINE"))
    if given is not None:
        return given
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


_LOOK_EVERY = 1.0  # seconds between two questions to the other ranks

SaveEvery = Union[None, int, timedelta]


def checked_interval(save_every: Any) -> SaveEvery:
    """`save_every`, if it is one."""
    if save_every is None or (isinstance(save_every, timedelta) and save_every > timedelta(0)):
        return save_every
    if not isinstance(save_every, (bool, timedelta)) and hasattr(save_every, "__index__"):
        steps = operator.index(save_every)
        if steps > 0:
            return steps
    raise WrongUse(
        "`save_every` cannot be {!r}".format(save_every),
        why="it is a number of steps from 1 on, or a time",
        hint="use save_every=100, save_every=datetime.timedelta(minutes=10), or leave it out",
    )


class SaveTiming:
    def __init__(self, save_every: SaveEvery, ranks: ProcessGroup) -> None:
        self._save_every = save_every
        self._ranks = ranks
        self._asked = StopRequests()
        self._deadline = counted(own_deadline(), time.time(), time.monotonic())
        self._saved_at = self._stepped_at = time.monotonic()
        self._step_took = 0.0  # seconds
        self._cost = 0.0  # seconds that the last save took from the training
        self._look_at = 0  # the step at which all ranks compare notes again
        self._requested = False  # a save, by the program
        self._asked.listen()

    def stepped(self) -> None:
        now = time.monotonic()
        self._step_took, self._stepped_at = now - self._stepped_at, now

    def request(self) -> None:
        """A save, as soon as all ranks compare notes."""
        self._requested = True

    def saved(self, began: float) -> None:
        self._requested = False
        self._saved_at = time.monotonic()
        self._cost = self._saved_at - began

    def wishes(self, steps: int, writing: float, busy: bool) -> Tuple[bool, bool]:
        """Whether to save after step number `steps`, and whether to stop.

        `writing` are the seconds that the last checkpoint took in the background; nobody asks for
        another by the clock while the writer is `busy`.
        """
        by_count = isinstance(self._save_every, int) and steps % self._save_every == 0
        if steps < self._look_at:
            return by_count, False
        pause = max(1, int(_LOOK_EVERY / max(self._step_took, 1e-6)))
        by_clock, stop, pause = self._ranks.agree(self._own(writing, busy, pause))
        self._look_at = steps + (pause if self._ranks.size > 1 else 1)
        return by_count or bool(by_clock), bool(stop)

    def _own(self, writing: float, busy: bool, pause: int) -> List[int]:
        """What this rank wishes; the first one has the clock."""
        stop = int(self._must_stop(writing))
        if not self._ranks.first:
            return [int(self._requested), stop, 0]
        save = self._requested or (not busy and self._by_clock(writing))
        return [int(save), stop, pause]

    def _by_clock(self, writing: float) -> bool:
        every = self._save_every
        if isinstance(every, int):
            return False
        seconds = interval(self._cost, writing=writing)
        if every is not None:
            seconds = every.total_seconds()
        return time.monotonic() - self._saved_at >= seconds

    def _must_stop(self, writing: float) -> bool:
        return bool(self._asked) or time_to_stop(
            time.monotonic(), self._deadline, self._cost + writing, self._step_took
        )

    def why_it_stops(self) -> str:
        return "received {}".format(self._asked.by) if self._asked else "the time limit is near"

    def end(self) -> None:
        self._asked.stop_listening()
