"""The job an agent runs in: what its script says of it, and when its program must stop."""

import time
from typing import Callable, Mapping, NamedTuple, Optional

from ..record import chain
from ..record.events import Diary
from ..record.lease import Lease
from ..record.plan import Plan
from ..record.runfolder import RunFolder
from . import interrupts
from .interrupts import Interrupts, Stop

_NEAR = 90.0  # seconds; Slurm may send its warning up to a minute early (sbatch(1), --signal)

Look = Callable[[], Optional[Stop]]  # for a reason to stop


class Job(NamedTuple):
    name: str  # as its scheduler calls it
    ask_at: float  # when the program is asked to stop, seconds since 1970
    patience: float  # how long it then has, before results are kept and the records written
    local: str  # node-local folder, or ""
    one_at_a_time: bool = False  # the scheduler runs no two links of one submission at once


class Work(NamedTuple):
    """All that one link needs to know."""

    run: RunFolder
    plan: Plan
    job: Job
    lease: Lease
    diary: Diary
    look: Look

    @property
    def link(self) -> int:
        return self.lease.link

    @property
    def carried(self) -> str:
        return self.run.carried(self.link)


def job_from(environment: Mapping[str, str], wanted: Plan, now: float) -> Job:
    ends = _moment(environment.get("RABASKA_JOB_ENDS", "").strip())
    if ends is None or ends <= now:
        ends = now + wanted.walltime
    margin = min(wanted.grace / 4, 10.0)
    return Job(
        name=environment.get("RABASKA_JOB", ""),
        ask_at=ends - wanted.grace,
        patience=wanted.grace - margin,
        local=environment.get("RABASKA_LOCAL", ""),
        one_at_a_time=bool(environment.get("RABASKA_ONE_AT_A_TIME")),
    )


def _moment(text: str) -> Optional[float]:
    """Seconds since 1970, or local time as Slurm prints it; None for anything else."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None  # such as "N/A", or nothing where the queue did not answer


def reasons_to_stop(holding: Lease, signals: Interrupts, job: Job) -> Look:
    """Looks in order of urgency: the run was lost, it was cancelled, the job ends."""

    def look() -> Optional[Stop]:
        lost = holding.lost()
        if lost:
            how = chain.SUPERSEDED if holding.superseded else chain.KILLED
            return Stop(how, lost, at_once=True)
        if holding.successor:
            return Stop(chain.KILLED, "the scheduler started another job for the run")
        if holding.stop_asked:
            return Stop(chain.CANCELLED, "somebody asked the run to stop")
        return _end_of_job(signals.received(), job.ask_at - time.time())

    return look


def _end_of_job(received: str, left: float) -> Optional[Stop]:
    warned = received in interrupts.WARNINGS and left <= _NEAR
    if received and not warned:
        # Preemption comes with a warning too. Who leaves by himself then is not queued again.
        by_scheduler = received in interrupts.WARNINGS
        reason = "the job was told to end ({})".format(received)
        return Stop(chain.KILLED, reason, scheduler_ends=by_scheduler)
    if warned or left <= 0:
        return Stop(chain.TIME_LIMIT, "the time limit of the job was near")
    return None
