"""Wait: until a run is over."""

from collections.abc import Callable

from rabaska.domain.runs import RunStatus
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.steps.follow_status import until_over


def wait(
    record: RunRecord, home: Home, seen: Callable[[RunStatus], None] | None = None
) -> RunStatus:
    """The run's status once it is over; `seen` is shown every status on the way."""
    return until_over(record, home, seen)
