"""Wait: follow a run to its end, asking less often the longer it takes."""

import time
from collections.abc import Callable

from rabaska.domain.runs import RunStatus
from rabaska.journeys.status import status
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord

_FIRST_PAUSE = 0.5  # seconds
_LONGEST_PAUSE_HERE = 2.0
_LONGEST_PAUSE = 60.0  # sites ask for no more than one question a minute


def wait(
    record: RunRecord, home: Home, seen: Callable[[RunStatus], None] | None = None
) -> RunStatus:
    """The run's status once it is over; `seen` is shown every status on the way."""
    longest = _LONGEST_PAUSE_HERE if record.cluster == "here" else _LONGEST_PAUSE
    pause = _FIRST_PAUSE
    while True:
        now = status(record, home)
        if seen:
            seen(now)
        if now.state.over:
            return now
        time.sleep(pause)
        pause = min(pause * 1.3, longest)
