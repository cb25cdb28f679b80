"""Execute: a command beside the running program of a run."""

from collections.abc import Sequence

from rabaska.domain.runs import Job, RunState, RunStatus
from rabaska.errors import WrongUse
from rabaska.journeys.station import station_of
from rabaska.journeys.status import status
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord
from rabaska.remote.place import quoted


def execute(record: RunRecord, home: Home, words: Sequence[str], *, terminal: bool) -> int:
    """Run `words` on the node of the run's job, in its folder and environment; the exit code."""
    job = _job_at_work(status(record, home))
    there = station_of(record, home)
    beside = [*there.node, "beside", record.path, str(job.number), "--", *words]
    command = there.scheduler.beside_command(job.id, beside, terminal=terminal)
    return there.place.attach(quoted(command), terminal=terminal)


def _job_at_work(run: RunStatus) -> Job:
    if run.state is not RunState.RUNNING or not run.jobs or run.jobs[-1].how:
        raise WrongUse(
            f"run {run.name} is {run.state.value}; a command runs beside a program at work",
            hint="`rabaska shell` opens a shell of its own",
        )
    return run.jobs[-1]
