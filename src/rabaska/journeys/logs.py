"""Logs: what the program printed, job after job, as it is written if wanted."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta

from rabaska.domain.runs import RunStatus
from rabaska.errors import RabaskaError, WrongUse
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.place import quoted
from rabaska.remote.ssh_errors import ConnectionLost
from rabaska.steps.connect import connect_for
from rabaska.steps.run_identity import confirm

_TRIES = 5  # in a row that brought nothing, before the connection is believed to be gone


def logs(
    record: RunRecord,
    home: Home,
    *,
    follow: bool = False,
    job: int | None = None,
    grep: str | None = None,
    since: timedelta | None = None,
) -> Iterator[bytes]:
    """The bytes of the log; where the connection breaks, it goes on with the next byte.

    With `grep`, a regular expression, lines that match only; with `since`, what was printed then.
    """
    refuse_pattern(grep)
    cluster = connect_for(record, home)
    confirm(record, cluster)
    words = ["tail", record.path]
    if follow:
        words.append("--follow")
    if job is not None:
        words += ["--job", str(job)]
    if grep is not None:
        words += [f"--grep={grep}"]
    came, tries, began = 0, 0, time.monotonic()
    while True:
        ago = [] if since is None else [f"--since={since.total_seconds() + _passed(began):.1f}"]
        try:
            script = quoted([*cluster.node, *words, *ago, "--from", str(came)])
            for chunk in cluster.place.stream(script):
                came, tries = came + len(chunk), 0
                yield chunk
            return
        except ConnectionLost:
            tries += 1
            if tries == _TRIES:
                raise


def _passed(began: float) -> float:
    return time.monotonic() - began


def refuse_pattern(grep: str | None) -> None:
    """WrongUse for what is no regular expression."""
    try:
        re.compile(grep or "")
    except re.error as problem:
        raise WrongUse(
            f"`{grep}` is not a regular expression",
            why=str(problem),
            hint="put a backslash before ( [ * + ? . to search for the character itself",
        ) from problem


def tell_phases(record: RunRecord, home: Home, seen: Callable[[RunStatus], None]) -> None:
    """Show `seen` the run's status while its log is followed, in a thread that ends with us."""
    from rabaska.steps.follow_status import until_over

    def follow() -> None:
        with suppress(RabaskaError):
            until_over(record, home, seen)

    threading.Thread(target=follow, name="phases", daemon=True).start()
