"""How far a program is that does not tell: read from its log now and then, with the time.

Also says early when the chain cannot advance, rather than after its first job, and lets it grow
when it is too short.
"""

import os
import re
import threading
import time
from typing import Callable, List, Optional, Tuple

from ..files import Json
from ..record import forecast, jobs, metrics, phases, printed_progress, resume_evidence
from ..record.events import say
from ..record.run_forecast import terms_of
from . import extend_chain
from .this_job import Work

SOONEST, LATEST = 0.5, 15.0  # seconds between two looks
_SHARE = 1 / 50  # of the time since the program started
_EARLY = 0.1  # of a job, after which a forecast is worth saying
_ENOUGH = 0.25  # of a job, after which one may act by it
_LAST_LINES = 8 * 1024  # bytes of the log
_OF = re.compile(r"epoch\s*[:=#]?\s*\[?\s*\d+\s*/\s*(\d{1,7})\b", re.IGNORECASE)  # "Epoch 3/10"


class LogProgress:
    """Looks at the log of a job, as long as its program runs."""

    def __init__(self, work: Work) -> None:
        self._work = work
        begun = jobs.read_begun(work.run, work.job)
        self._terms = terms_of(work.run, work.plan, begun) if begun else None
        self._first: Optional[Tuple[float, float]] = None  # when, and where it was
        self._last: Optional[float] = None
        self._warned = False
        self._grown = False
        self._trains = False
        self._over = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def start(self, may_write: Callable[[], bool]) -> None:
        began = time.monotonic()

        def keep_looking() -> None:
            while not self._over.wait(_pause(time.monotonic() - began)):
                try:
                    if may_write():
                        self.look(time.time())
                except (OSError, ValueError, KeyError, TypeError):
                    pass  # nothing depends on it, and the next look is soon

        self._thread = threading.Thread(target=keep_looking, name="pace", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def look(self, now: float) -> None:
        work = self._work
        lines = metrics.tail(work.run, work.job)
        if not metrics.watched(lines):
            lines += self._note(now)
        if metrics.watched(lines) or self._last is not None:
            self._began_training()
        if self._terms is not None:
            self._judge(lines, self._terms, now)

    def _began_training(self) -> None:
        if not self._trains and self._work.stop_reason() is None:
            self._work.phases.enter(phases.TRAINING)
        self._trains = True

    def _judge(self, lines: List[Json], terms: forecast.Terms, now: float) -> None:
        passed = (now - terms.begun) / max(terms.seconds, 1.0)
        pace = forecast.pace(lines, terms.start, self._work.plan.command)
        if pace is None:
            return
        if not self._warned and passed >= _EARLY:
            self._warn(pace, terms)
        # Near its end the job has other things to do, and sees to the next one when it is over.
        if not self._grown and _ENOUGH <= passed < 1 - _EARLY:
            self._grow(pace, terms)

    def _note(self, now: float) -> List[Json]:
        """A line about the log, if it has moved on."""
        text = _end_of(self._work.run.log(self._work.job))
        progress = printed_progress.read(text, self._work.plan.progress)
        unit = forecast.STEP if progress.epoch is None else forecast.EPOCH
        at = float(progress.step or 0) if progress.epoch is None else progress.epoch
        if at == self._last or (progress.step is None and progress.epoch is None):
            return []
        self._first = (now, at) if self._first is None or at < self._first[1] else self._first
        self._last = at
        told = {"time": now, "since": self._first[0], "from": self._first[1], "at": at}
        of = _OF.findall(text)
        line = dict(told, unit=unit, total=float(of[-1]) if of else None)
        metrics.append(self._work.run, self._work.job, **line)
        return [line]

    def _warn(self, pace: forecast.Pace, terms: forecast.Terms) -> None:
        outlook = forecast.forecast(pace, terms)
        again = resume_evidence.begins_again(self._work.run, self._work.plan)
        if again.why and again.certain:
            outlook = forecast.in_one_job(outlook, pace, terms, again.why)
        if outlook.stuck and not (pace.save_every is None and self._has_saved()):
            self._warned = True
            say("this chain may never advance: {}; {}".format(outlook.stuck, outlook.hint))
            self._work.event_log.note("cannot advance", reason=outlook.stuck, hint=outlook.hint)

    def _grow(self, pace: forecast.Pace, terms: forecast.Terms) -> None:
        """See to the next job, if this is the last in the queue and will not be enough."""
        work, submitted = self._work, extend_chain.submitted_jobs(self._work)
        if work.job < submitted:
            return
        saved = self._has_saved()
        outlook = forecast.forecast(pace, terms, saved)
        if (saved or pace.save_every is not None) and (outlook.jobs or 0) > submitted:
            # Why it could not be is said at the end of the job, where it is tried again.
            complaint = extend_chain.submit_one_more(
                work, forecast.shortage(outlook, submitted), submitted
            )
            self._grown = not extend_chain.no_answer(complaint)

    def _has_saved(self) -> bool:
        work = self._work
        begun = jobs.read_begun(work.run, work.job)
        found = jobs.newest(work.run, work.job, work.plan.patterns)
        return begun is not None and jobs.progressed(begun.checkpoint_seen, found)


def started(work: Work) -> LogProgress:
    progress = LogProgress(work)
    progress.start(may_write=lambda: not work.lease.lost())
    return progress


def count_parts(work: Work) -> None:
    """What the program spent, while it trained, on data, validation, logs and saves."""
    for part, seconds in metrics.parts(metrics.tail(work.run, work.job)).items():
        work.phases.of_these(phases.TRAINING, part, seconds)


def _pause(lasted: float) -> float:
    return min(LATEST, max(SOONEST, lasted * _SHARE))


def _end_of(path: str) -> str:
    with open(path, "rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - _LAST_LINES))
        return stream.read(_LAST_LINES).decode("utf-8", "replace")
