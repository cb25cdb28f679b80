"""Signals sent to the agent: kept as a flag, and looked at where something can be done."""

import os
import signal
from contextlib import contextmanager
from typing import Callable, Iterator, NamedTuple, Optional

ASKED = ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGHUP")
# What Slurm (`--signal`) and SGE (`s_rt`, `-notify`) send ahead of the limit.
WARNINGS = ("SIGUSR1", "SIGUSR2")
_TICK = 0.5  # seconds


class Stop(NamedTuple):
    """Why the program must stop now."""

    how: str  # of `chain`
    reason: str
    at_once: bool = False  # no time to save: whatever it writes now is lost or does harm
    scheduler_ends: bool = False  # the scheduler will end the job itself, and may queue it again


class BrokenOff(Exception):
    """Work was left because of `stop`."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.reason)
        self.stop = stop


class Interrupts:
    def __init__(self, keeper: Optional[int] = None) -> None:
        self._received = ""
        self._keeper = keeper

    def install(self) -> None:
        for name in ASKED:
            signal.signal(getattr(signal, name), self._note)

    def _note(self, number: int, frame: object) -> None:
        # A handler may run between any two instructions: it only sets a flag.
        self._received = self._received or signal.Signals(number).name

    def received(self) -> str:
        """The first signal, or that this computer's queue stopped; "" while there was none."""
        if self._received:
            return self._received
        if self._keeper is not None and os.getppid() != self._keeper:
            return "this computer's queue stopped"
        return ""


@contextmanager
def broken_off_when(look: Callable[[], Optional[Stop]]) -> Iterator[None]:
    """Leave the block by BrokenOff as soon as `look` sees a reason, whatever is under way."""

    def tick(number: int, frame: object) -> None:
        stop = look()
        if stop is not None:
            raise BrokenOff(stop)

    before = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, 0.01, _TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
