"""Report: all that is known of some runs, for a page that can be kept."""

from collections.abc import Sequence
from pathlib import Path

from rabaska.node import files, private_files
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.local_disk import unwritable
from rabaska.steps.run_history import RunHistory, run_histories


def report(records: Sequence[RunRecord], home: Home) -> list[RunHistory]:
    return run_histories(records, home)


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
