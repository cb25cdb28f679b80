"""The job an agent runs in: what its script says of it, and when its program must stop."""

import os
import time
from typing import Callable, Mapping, NamedTuple, Optional

from ..record import chain_rule
from ..record.events import EventLog, say
from ..record.lease import Lease
from ..record.phases import PhaseLog
from ..record.plan import Plan
from ..record.run_folder import RunFolder
from . import stop_signals
from .stop_signals import Deadline, Interrupts, Stop, moment

_NEAR = 90.0  # seconds; Slurm may send its warning up to a minute early (sbatch(1), --signal)

_CANCELLED = Stop(chain_rule.CANCELLED, "the run was asked to stop")

Look = Callable[[], Optional[Stop]]  # for a reason to stop


class ThisJob(NamedTuple):
    id: str  # as its scheduler calls it
    ask_at: float  # when the program is asked to stop, seconds since 1970; for people
    due: float  # the same by the monotonic clock: that of the day may be set
    local: str  # node-local folder, or ""
    one_at_a_time: bool = False  # the scheduler runs no two jobs of one submission at once


class Work(NamedTuple):
    """All that one job needs to know."""

    run: RunFolder
    plan: Plan
    this_job: ThisJob
    lease: Lease
    event_log: EventLog
    deadline: Deadline
    stop_reason: Look
    end_signal: Look  # whether the job was told to end, whatever the clock says
    phases: PhaseLog

    @property
    def job(self) -> int:
        return self.lease.job

    @property
    def carried(self) -> str:
        return self.run.place(self.job)


def say_in_log(work: Work, text: str) -> None:
    """A line for the user: where the job prints, and where the program did."""
    say(text)
    try:
        with open(work.run.log(work.job), "ab") as log:
            log.write("\nrabaska: {}\n".format(text).encode("utf-8", "replace"))
    except OSError:
        pass  # a full disk; it was said


def this_job_from(environment: Mapping[str, str], run_plan: Plan, now: float) -> ThisJob:
    ends = moment(environment.get("RABASKA_JOB_ENDS", ""))
    if ends is None or ends <= now:
        ends = now + run_plan.walltime
    return ThisJob(
        id=environment.get("RABASKA_JOB_ID", ""),
        ask_at=ends - run_plan.grace,
        due=time.monotonic() + ends - run_plan.grace - now,
        local=environment.get("RABASKA_LOCAL", ""),
        one_at_a_time=bool(environment.get("RABASKA_ONE_AT_A_TIME")),
    )


def reasons_to_stop(holding: Lease, signals: Interrupts, deadline: Deadline) -> Look:
    """Looks in order of urgency: the run was lost, it was cancelled, the job ends."""

    def look() -> Optional[Stop]:
        lost = holding.lost()
        if lost:
            how = chain_rule.SUPERSEDED if holding.superseded else chain_rule.KILLED
            return Stop(how, lost, at_once=True)
        if holding.successor:
            return Stop(chain_rule.KILLED, "the scheduler started another job for the run")
        if holding.stop_asked:
            return _CANCELLED
        return _end_of_job(holding.run, signals.received(), deadline.left())

    return look


def seconds_to_save(grace: float, copying: float) -> float:
    """Seconds that the program has to save, of its `grace`.

    The rest is for what lies beside its code, which took `copying` seconds the last time, and for
    the records. Half is the program's own in any case.
    """
    return grace - min(grace / 2, max(copying, min(grace / 4, 10.0)) + seconds_for_records(grace))


def seconds_for_records(grace: float) -> float:
    """Seconds in which a job writes how it ended."""
    return min(grace / 10, 5.0)


def told_to_end(run: RunFolder, signals: Interrupts, deadline: Deadline) -> Look:
    """Looks only for what was said to the job, and not at the clock."""

    def look() -> Optional[Stop]:
        received = signals.received()
        return _end_of_job(run, received, deadline.left()) if received else None

    return look


def _end_of_job(run: RunFolder, received: str, left: float) -> Optional[Stop]:
    # Who cancels a run writes STOP and has the job ended at once, before the lease looks for it.
    if received and os.path.exists(run.stop):
        return _CANCELLED
    warned = received in stop_signals.WARNINGS and left <= _NEAR
    if received and not warned:
        # Preemption comes with a warning too. Who leaves by himself then is not queued again.
        by_scheduler = received in stop_signals.WARNINGS
        reason = "the job was told to end ({})".format(received)
        return Stop(chain_rule.KILLED, reason, scheduler_ends=by_scheduler)
    if warned or left <= 0:
        return Stop(chain_rule.TIME_LIMIT, "the time limit of the job was near")
    return None
