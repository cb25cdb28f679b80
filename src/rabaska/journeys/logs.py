"""Logs: what the program printed, job after job, as it is written if wanted."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

from rabaska.domain.runs import RunStatus
from rabaska.errors import RabaskaError
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.place import quoted
from rabaska.remote.ssh_errors import ConnectionLost
from rabaska.steps.connect import connect_for
from rabaska.steps.run_identity import confirm

_TRIES = 5  # in a row that brought nothing, before the connection is believed to be gone


def logs(
    record: RunRecord, home: Home, *, follow: bool = False, job: int | None = None
) -> Iterator[bytes]:
    """The bytes of the log; where the connection breaks, it goes on with the next byte."""
    cluster = connect_for(record, home)
    confirm(record, cluster)
    words = ["tail", record.path]
    if follow:
        words.append("--follow")
    if job is not None:
        words += ["--job", str(job)]
    came, tries = 0, 0
    while True:
        try:
            for chunk in cluster.place.stream(quoted([*cluster.node, *words, "--from", str(came)])):
                came, tries = came + len(chunk), 0
                yield chunk
            return
        except ConnectionLost:
            tries += 1
            if tries == _TRIES:
                raise


def tell_phases(record: RunRecord, home: Home, seen: Callable[[RunStatus], None]) -> None:
    """Show `seen` the run's status while its log is followed, in a thread that ends with us."""
    from rabaska.steps.follow_status import until_over

    def follow() -> None:
        with suppress(RabaskaError):
            until_over(record, home, seen)

    threading.Thread(target=follow, name="phases", daemon=True).start()
