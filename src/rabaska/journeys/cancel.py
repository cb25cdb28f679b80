"""Cancel: ask a run to stop, and take what waits out of the queue."""

import json
import time

from rabaska.domain.jobs import JobId
from rabaska.domain.runs import RunState, RunStatus
from rabaska.errors import CommandFailed
from rabaska.journeys.station import station_of
from rabaska.journeys.status import status
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord
from rabaska.remote.place import quoted
from rabaska.schedulers.protocol import Scheduler


def cancel(record: RunRecord, home: Home) -> RunStatus:
    """The run's status after it was asked to stop; a run that is over is left as it is."""
    before = status(record, home)
    if before.state in (RunState.FINISHED, RunState.FAILED, RunState.CANCELLED):
        return before
    there = station_of(record, home)
    script = _stop_script(record.path)
    if before.job:
        # STOP first: a link that begins between the two commands sees it and leaves at once.
        script += f" && {_cancel_script(JobId(before.job), there.scheduler)}"
    outcome = there.place.run(script)
    after = status(record, home)
    # Jobs that ended by themselves meanwhile cannot be cancelled, and need not be.
    if outcome.exit_code != 0 and after.state not in (RunState.CANCELLED, RunState.FINISHED):
        raise CommandFailed(
            f"run {record.name} could not be cancelled",
            why=outcome.complaint,
            hint="the same command can be given again",
        )
    return after


def _cancel_script(job: JobId, scheduler: Scheduler) -> str:
    """The last link first, so that none begins meanwhile; links that are over may be refused."""
    each = [quoted(scheduler.cancel_command([link])) for link in reversed(job.each)]
    if len(each) == 1:
        return each[0]
    return "{ code=1; " + "".join(f"{command} && code=0; " for command in each) + "exit $code; }"


def _stop_script(folder: str) -> str:
    content = json.dumps({"time": time.time(), "reason": "cancelled by its user"})
    partial, final = quoted([f"{folder}/STOP.partial"]), quoted([f"{folder}/STOP"])
    return f"printf '%s\\n' {quoted([content])} > {partial} && mv -f {partial} {final}"
