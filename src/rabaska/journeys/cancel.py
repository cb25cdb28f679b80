"""Cancel: ask a run to stop, and take what waits out of the queue."""

import json
import time

from rabaska.domain.runs import RunState, RunStatus
from rabaska.errors import CommandFailed
from rabaska.journeys.station import station_of
from rabaska.journeys.status import newest_job, status
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord
from rabaska.remote.place import quoted


def cancel(record: RunRecord, home: Home) -> RunStatus:
    """The run's status after it was asked to stop; a run that is over is left as it is."""
    before = status(record, home)
    if before.state in (RunState.FINISHED, RunState.FAILED, RunState.CANCELLED):
        return before
    there = station_of(record, home)
    # STOP first: a link that begins between the two commands sees it and leaves at once.
    _leave_stop(there.place.run(_stop_script(record.path)).exit_code, record)
    report = json.loads(there.ask("report", record.path).output)
    job = newest_job(report, there)
    if job is not None:
        there.place.run(quoted(there.scheduler.cancel_command([job])))
    return status(record, home)


def _stop_script(folder: str) -> str:
    content = json.dumps({"time": time.time(), "reason": "cancelled by its user"})
    partial, final = quoted([f"{folder}/STOP.partial"]), quoted([f"{folder}/STOP"])
    return f"printf '%s\\n' {quoted([content])} > {partial} && mv -f {partial} {final}"


def _leave_stop(exit_code: int, record: RunRecord) -> None:
    if exit_code != 0:
        raise CommandFailed(f"run {record.name} could not be asked to stop")
