"""How long this process ran: the time for which it was stopped does not count.

A scheduler that preempts by suspending stops every process of a job (SIGSTOP, or a frozen cgroup)
and lets it run again an hour later. By the clock, everything it waited for took an hour too long.
"""

import threading
import time
from typing import Callable

_TICKS = 4  # of the clock, within the longest pause that still counts


class AwakeClock:
    """Counts seconds by a thread that does nothing else: a gap between its ticks was slept through.

    A computer that is merely busy delays a tick as well; up to `longest` seconds count as they are.
    """

    def __init__(self, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest = longest
        self._clock = clock
        self._at = clock(), 0.0  # the last tick, and the seconds counted until then
        self._slept = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="awake", daemon=True)
        self._thread.start()

    def now(self) -> float:
        """Seconds since the clock was made, for which this process ran."""
        ticked, counted = self._at
        return counted + min(self._clock() - ticked, self._longest)

    def slept(self) -> float:
        """Seconds for which it was stopped so far."""
        ticked, _ = self._at
        return self._slept + max(0.0, self._clock() - ticked - self._longest)

    def end(self) -> None:
        self._over.set()

    def _keep(self) -> None:
        while not self._over.wait(self._longest / _TICKS):
            ticked, counted = self._at
            now = self._clock()
            self._slept += max(0.0, now - ticked - self._longest)
            self._at = now, counted + min(now - ticked, self._longest)
