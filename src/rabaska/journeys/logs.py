"""Logs: what the program printed, link after link, as it is written if wanted."""

from collections.abc import Iterator

from rabaska.journeys.station import station_of
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord
from rabaska.remote.place import quoted


def logs(
    record: RunRecord, home: Home, *, follow: bool = False, link: int | None = None
) -> Iterator[bytes]:
    there = station_of(record, home)
    words = ["tail", record.path]
    if follow:
        words.append("--follow")
    if link is not None:
        words += ["--link", str(link)]
    return there.place.stream(quoted([*there.node, *words]))
