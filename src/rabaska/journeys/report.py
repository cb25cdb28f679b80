"""Report: all that is known of some runs, for a page that can be kept."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rabaska.errors import NoSuchRun, RabaskaError
from rabaska.node import files, private_files
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.records.search_index import SearchRecord
from rabaska.remote.local_disk import unwritable
from rabaska.steps.run_history import RunHistory, run_histories
from rabaska.steps.shown_searches import SeenSearch, ShownSearches


def report(records: Sequence[RunRecord], home: Home) -> list[RunHistory]:
    return run_histories(records, home) if records else []


def report_searches(
    records: Sequence[SearchRecord], home: Home
) -> tuple[list[SeenSearch], list[RunRecord]]:
    """The searches, and the runs of their best trials."""
    shown = ShownSearches(home)
    searches = [shown.seen(record) for record in records]
    runs = []
    for seen in searches:
        if seen.status is None:
            raise NoSuchRun(
                f"nothing is known of search {seen.record.name} yet",
                why=seen.problem,
                hint=f"try again when {seen.record.cluster} can be reached",
            )
        if seen.status.best:
            with suppress(RabaskaError):  # its folder may be gone; the search tells enough
                runs.append(shown.run_of(seen.record, seen.status.best.number))
    return searches, runs


def write_report(file: Path, text: str) -> Path:
    """Where it was written: complete, or not at all."""
    target = file.expanduser().absolute()
    try:
        with private_files.AsUser():  # a report is for whoever may see the folder
            target.parent.mkdir(parents=True, exist_ok=True)
            files.write_whole(str(target), text)
    except OSError as problem:
        raise unwritable(problem, target) from problem
    return target
