"""Follow a run to its end, for `wait` and for `logs --follow`.

Its folder is watched, which asks no scheduler: what happens there is seen within two seconds. The
queue is asked at once then, and else less often the longer it takes.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from rabaska.domain.runs import RunState, RunStatus
from rabaska.errors import RabaskaError, Unreachable
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.place import quoted
from rabaska.steps.connect import connect_for
from rabaska.steps.query_status import status

_FIRST_PAUSE = 0.5  # seconds
_LONGEST_PAUSE_HERE = 1.0
_SHORTEST_PAUSE = 1.0  # between two questions, however much happens
_BACK = 60.0  # seconds until a folder that could not be watched is tried again
_LONGEST_PAUSE = 60.0  # sites ask for no more than one question a minute
_SURE = 3  # times in a row that a run's folder is not there
_PATIENCE = 60  # questions in a row that nobody answered: an hour, at the longest pause


def until_over(
    record: RunRecord, home: Home, seen: Callable[[RunStatus], None] | None = None
) -> RunStatus:
    """The run's status once it is over; `seen` is shown every status on the way.

    A cluster that cannot be reached for a while is asked again: a run does not depend on us.
    """
    changes = WatchedFolder(record, home)
    try:
        return _followed(record, home, seen, changes)
    finally:
        changes.end()


def _followed(
    record: RunRecord,
    home: Home,
    seen: Callable[[RunStatus], None] | None,
    changes: "WatchedFolder",
) -> RunStatus:
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
        changes.wait(pause)
        pause = min(pause * 1.3, longest)


class WatchedFolder:
    """Waits for whatever happens in a run's folder on a cluster, in a thread of its own.

    On this computer the queue is asked every second anyway. Where the folder cannot be watched,
    nothing but time wakes who waits.
    """

    def __init__(self, record: RunRecord, home: Home) -> None:
        self._record, self._home = record, home
        self._happened = threading.Event()
        self._over = threading.Event()
        if record.cluster != "here":
            threading.Thread(target=self._keep_watching, name="watch", daemon=True).start()

    def wait(self, seconds: float) -> None:
        """Until something happens, at most `seconds`."""
        time.sleep(min(seconds, _SHORTEST_PAUSE))
        self._happened.wait(max(0.0, seconds - _SHORTEST_PAUSE))
        self._happened.clear()

    def end(self) -> None:
        self._over.set()

    def _keep_watching(self) -> None:
        while not self._over.is_set():
            try:
                cluster = connect_for(self._record, self._home)
                words = quoted([*cluster.node, "watch", self._record.path])
                for chunk in cluster.place.stream(words):
                    if self._over.is_set():
                        return
                    if b"changed" in chunk:
                        self._happened.set()
            except RabaskaError:
                self._over.wait(_BACK)
            self._over.wait(_SHORTEST_PAUSE)
