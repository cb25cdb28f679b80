"""Wait: follow a run to its end, asking less often the longer it takes."""

import time
from collections.abc import Callable
from dataclasses import replace

from rabaska.domain.runs import RunState, RunStatus
from rabaska.errors import Unreachable
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.steps.query_status import status

_FIRST_PAUSE = 0.5  # seconds
_LONGEST_PAUSE_HERE = 2.0
_LONGEST_PAUSE = 60.0  # sites ask for no more than one question a minute
_SURE = 3  # times in a row that a run's folder is not there
_PATIENCE = 60  # questions in a row that nobody answered: an hour, at the longest pause


def wait(
    record: RunRecord, home: Home, seen: Callable[[RunStatus], None] | None = None
) -> RunStatus:
    """The run's status once it is over; `seen` is shown every status on the way.

    A cluster that cannot be reached for a while is asked again: a run does not depend on us.
    """
    longest = _LONGEST_PAUSE_HERE if record.cluster == "here" else _LONGEST_PAUSE
    pause, unanswered, gone = _FIRST_PAUSE, 0, 0
    now: RunStatus | None = None
    while True:
        try:
            now, unanswered = status(record, home), 0
        except Unreachable as problem:
            unanswered += 1
            if now is None or unanswered > _PATIENCE:
                raise
            now = replace(now, state=RunState.UNKNOWN, reason=problem.what, hint="")
        if seen:
            seen(now)
        # A file system that comes back shows a folder that was not there a moment ago.
        gone = gone + 1 if now.state is RunState.GONE else 0
        if now.state.over and gone in (0, _SURE):
            return now
        time.sleep(pause)
        pause = min(pause * 1.3, longest)
