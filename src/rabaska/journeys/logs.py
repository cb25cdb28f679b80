"""Logs: what the program printed, job after job, as it is written if wanted."""

from collections.abc import Iterator

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
