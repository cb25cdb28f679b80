"""Waiting for a run, and telling who wants to be told: shared by `wait`, `run --wait` and `status`.

Without click: `status` must not wait for it.
"""

from collections.abc import Sequence

from rabaska.domain.runs import RunStatus
from rabaska.errors import RabaskaError
from rabaska.records.home import home
from rabaska.records.run_index import RunRecord
from rabaska.steps.notify import Notifier, notifier


def wait_for(record: RunRecord, *, shown: bool) -> RunStatus:
    """The run's status once it is over; shown on the way, and the terminal's bell at the end."""
    from rabaska.cli import terminal
    from rabaska.journeys import wait as journey

    following, teller = terminal.Following(), working_notifier()

    def seen(run: RunStatus) -> None:
        if shown:
            following(run)
        if teller:
            teller(record, run)

    try:
        ended = journey.wait(record, home(), seen)
    finally:
        following.stop()
    terminal.bell()
    return ended


def working_notifier() -> Notifier | None:
    """Who tells; a mistake in its settings is said, and stops nothing."""
    try:
        teller = notifier(home())
    except RabaskaError as problem:
        _note(f"nobody is told: {problem}")
        return None
    if teller:
        teller.complain = _note
    return teller


def tell_all(records: Sequence[RunRecord], runs: Sequence[RunStatus]) -> None:
    """After `status`: nothing is asked for it."""
    teller = working_notifier()
    if teller:
        teller.may_ask = False
        for record, run in zip(records, runs, strict=True):
            teller(record, run)


def _note(text: str) -> None:
    from rabaska.cli import terminal

    terminal.note(f"note: {text}")
