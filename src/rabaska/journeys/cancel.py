"""Cancel: ask a run to stop, and take what waits out of the queue."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace

from rabaska.domain.jobs import JobId
from rabaska.domain.runs import RunState, RunStatus
from rabaska.errors import CommandFailed
from rabaska.journeys.station import Station, station_of
from rabaska.journeys.status import status
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord
from rabaska.remote.place import Outcome, quoted, surely

_OVER = (RunState.FINISHED, RunState.FAILED, RunState.CANCELLED)
_MARK = "== "
_TELL = f"""echo "{_MARK}$(echo "${{said:-exit code $?}}" | tr '\\n' ' ')" """


def cancel(record: RunRecord, home: Home) -> RunStatus:
    """The run's status after it was asked to stop; a run that is over is left as it is.

    What has left its scheduler's memory cannot be cancelled there, and need not be: a link that
    is still at work sees STOP at its next sign of life, and no other one goes past it.
    """
    before = status(record, home)
    if before.state in _OVER:
        return before
    there = station_of(record, home)
    jobs = JobId(before.job).each if before.job else ()
    # STOP first: a link that begins between the two commands sees it and leaves at once.
    script = "\n".join([_stop_script(record.path), *_cancel_lines(jobs, there)])
    outcome = surely(lambda: there.place.run(script))
    after = status(record, home)
    refused = _refused(outcome)
    unclear = [said for said in refused if not there.scheduler.capabilities.is_gone(said)]
    if outcome.exit_code != 0 or (unclear and after.state not in _OVER):
        raise CommandFailed(
            f"run {record.name} could not be cancelled",
            why=unclear[0] if unclear else outcome.complaint,
            hint="the same command can be given again",
        )
    if len(refused) < len(jobs) or not jobs:
        return after
    forgotten = f"its scheduler had no job of it any more ({refused[0]})"
    return replace(after, problems=(*after.problems, forgotten))


def _cancel_lines(jobs: Sequence[JobId], there: Station) -> list[str]:
    """The last link first, so that none begins meanwhile; each refusal becomes a line."""
    commands = [quoted(there.scheduler.cancel_command([link])) for link in reversed(jobs)]
    return [f"said=$({command} 2>&1) || {_TELL}" for command in commands]


def _refused(outcome: Outcome) -> list[str]:
    lines = outcome.output.splitlines()
    return [line.removeprefix(_MARK).strip() for line in lines if line.startswith(_MARK)]


def _stop_script(folder: str) -> str:
    content = json.dumps({"time": time.time(), "reason": "cancelled by its user"})
    partial, final = quoted([f"{folder}/STOP.partial"]), quoted([f"{folder}/STOP"])
    return f"printf '%s\\n' {quoted([content])} > {partial} && mv -f {partial} {final} || exit 1"
