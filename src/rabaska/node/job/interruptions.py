"""Interruptions that a rehearsal plans: a job is cut off as a cluster might do it."""

import os
import time
from typing import Optional

from ..checkpoints import newest_checkpoint, validity
from ..record import chain_rule, jobs, printed_progress
from ..record.plan import ASK, KILL_WHILE_SAVING, Plan, PlannedInterruption
from ..record.run_folder import RunFolder
from .stop_signals import Stop
from .this_job import Look, Work

_AT_ONCE = 0.1  # seconds for which a file that is being written is looked for, each time
_TICK = 0.002


def planned(plan: Plan, job: int) -> Optional[PlannedInterruption]:
    return plan.cuts[job - 1] if job <= len(plan.cuts) else None


def planned_for(run: RunFolder, plan: Plan, job: int, look: Look) -> Look:
    """`look`, which also sees when the cut is due that the plan has for this job, if any."""
    cut = planned(plan, job)
    return look if cut is None else _Cutting(run, plan, job, cut, look).look


class _Cutting:
    def __init__(
        self, run: RunFolder, plan: Plan, job: int, cut: PlannedInterruption, look: Look
    ) -> None:
        self._run, self._plan, self._job = run, plan, job
        self._cut = cut
        self._look = look
        self._found = jobs.newest(run, job, plan.patterns)
        self._began = None  # type: Optional[float]
        self._stop = None  # type: Optional[Stop]

    def look(self) -> Optional[Stop]:
        stop = self._look()
        if stop is None and self._stop is None and self._is_due():
            reason = "the rehearsal asked" if self._cut.how == ASK else "the rehearsal killed it"
            self._stop = Stop(chain_rule.KILLED, reason, at_once=self._cut.how != ASK)
        return stop or self._stop

    def _is_due(self) -> bool:
        log = self._run.log(self._job)
        if not os.path.exists(log):
            return False
        self._began = self._began or time.monotonic()
        if self._cut.step is None:
            return time.monotonic() - self._began >= self._cut.seconds
        step = printed_progress.span(log, self._plan.progress).last_step
        if step is None or step < self._cut.step:
            return False
        return step >= (self._cut.latest or 0) or self._can_tell()

    def _can_tell(self) -> bool:
        """Whether a cut would show something now: there is a new save, or half of one."""
        if self._cut.how == KILL_WHILE_SAVING:
            return self._is_being_saved()
        return jobs.newest(self._run, self._job, self._plan.patterns) != self._found

    def _is_being_saved(self) -> bool:
        until = time.monotonic() + _AT_ONCE
        while time.monotonic() < until:
            if _half_written(self._run.carried(self._job), self._plan):
                return True
            time.sleep(_TICK)
        return False


def _half_written(carried: str, plan: Plan) -> bool:
    for candidate in newest_checkpoint.candidates(carried, plan.patterns):
        try:
            if validity.check(os.path.join(carried, candidate.path)) is not None:
                return True
        except OSError:
            continue  # replaced or deleted since it was listed
    return False


def damage_if_planned(work: Work) -> None:
    """Cut the newest checkpoint short, as a disk or a killed program may leave it."""
    cut = planned(work.plan, work.job)
    if cut is None or not cut.damage:
        return
    found = jobs.newest(work.run, work.job, work.plan.patterns)
    if found is None:
        return
    path = _largest(os.path.join(work.carried, found["path"]))
    os.truncate(path, os.path.getsize(path) // 2)
    work.event_log.note("damaged for the rehearsal", path=found["path"])


def _largest(path: str) -> str:
    """The file itself, or the largest of a checkpoint that is a folder."""
    if not os.path.isdir(path):
        return path
    return max((entry.path for entry in os.scandir(path)), key=os.path.getsize)
