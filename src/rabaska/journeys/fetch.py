"""Fetch: bring a run's results home, while it runs and after."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rabaska.errors import NoSuchRun
from rabaska.journeys.station import Station, station_of
from rabaska.journeys.telling import Silent, Teller, telling
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord
from rabaska.remote.place import Moved, quoted, surely

_TRIES = 5  # a chain seldom hands over twice during one fetch


@dataclass(frozen=True)
class Fetched:
    run: str
    folder: Path
    files: int  # how many came now; what was here already is not brought again


def fetch(
    record: RunRecord,
    home: Home,
    *,
    to: Path | None = None,
    leave_out: Sequence[str] = (),
    teller: Teller | None = None,
) -> Fetched:
    """Copy output, checkpoints, logs and records into `<project>/results/<run>`."""
    there = station_of(record, home)
    folder = to or Path(record.project) / "results" / record.name
    moved = telling(f"fetching {record.name}", teller or Silent())
    came = _bring_carried(record, there, folder, leave_out, moved)
    records = ["carried/*", "output", "*.partial"]
    came += there.place.bring(record.path, folder / "run", there, leave_out=records, moved=moved)
    return Fetched(run=record.name, folder=folder, files=came)


def _bring_carried(
    record: RunRecord, there: Station, folder: Path, leave_out: Sequence[str], moved: Moved
) -> int:
    """Bring what the newest link carries, wherever a link that begins meanwhile moves it."""
    for _ in range(_TRIES):
        names = _carried(record, there)
        if not names:
            break
        source = f"{record.path}/carried/{max(names)}"
        try:
            return there.place.bring(source, folder, there, leave_out=leave_out, moved=moved)
        except FileNotFoundError:
            continue
    raise NoSuchRun(
        f"run {record.name} has nothing to fetch", why=f"{record.path} holds no results"
    )


def _carried(record: RunRecord, there: Station) -> list[str]:
    """The links that hold something; there is one, but for the moment in which it is renamed."""
    script = f"ls {quoted([record.path + '/carried'])}"
    return surely(lambda: there.place.run(script)).output.split()
