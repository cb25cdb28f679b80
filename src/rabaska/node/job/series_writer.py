"""Writes the numbers that a program leaves as series, in a thread, as long as the job lasts."""

import os
import threading
import time
from typing import Callable, List, Optional

from ..record.log_times import LogTimes
from ..series.job_series import JobSeries, finish_earlier
from .this_job import Work

_SOONEST, _LATEST = 0.5, 2.0  # seconds between two looks; one that finds nothing is a few stats
_SHARE = 1 / 50  # of the time since the program started
_PATIENCE = 10.0  # seconds for a look that is under way when the program ends
_COST = 20  # a look that took a second is followed by a pause of so many


class SeriesWriter:
    """Made before the program starts, so that what is there then is known to be older."""

    def __init__(self, work: Work, code: str) -> None:
        roots = _roots(work, code)
        finish_earlier(work.run, work.job, roots[1:], time.time())
        self._series = JobSeries(work.run, work.job, time.time(), roots, work.plan.progress)
        self._times = LogTimes(work.run, work.job)
        self._over = threading.Event()
        self._may_write: Callable[[], bool] = lambda: not work.lease.lost()
        self._thread = threading.Thread(target=self._keep_looking, name="series", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """The last look, after the program."""
        self._over.set()
        self._thread.join(_PATIENCE)
        if not self._thread.is_alive():  # else it waits for storage that does not answer
            self._look(at_end=True)

    def _keep_looking(self) -> None:
        began, pause = time.monotonic(), _SOONEST
        while not self._over.wait(pause):
            before = time.process_time()
            self._look()
            lasted = time.monotonic() - began
            cost = time.process_time() - before
            pause = max(min(_LATEST, max(_SOONEST, lasted * _SHARE)), _COST * min(cost, 30.0))

    def _look(self, at_end: bool = False) -> None:
        try:
            if self._may_write():
                self._times.note(time.time())
                self._series.look(time.time(), at_end)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # nothing depends on it, and the next look is soon


def start(series: Optional[SeriesWriter]) -> None:
    if series is not None:
        series.start()


def end(series: Optional[SeriesWriter]) -> None:
    if series is not None:
        series.end()


def _roots(work: Work, code: str) -> List[str]:
    """The code folder first: what it holds is copied to the output now and then."""
    return [code] + [os.path.join(work.carried, name) for name in ("output", "checkpoints")]
