"""Note: what its user says of a run, kept in this computer's list."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, remember
from rabaska.steps.connect import connect_for
from rabaska.steps.read_plan import read_plan


@dataclass(frozen=True)
class Note:
    run: str
    text: str
    tags: tuple[str, ...]


def note(
    record: RunRecord,
    home: Home,
    text: str | None = None,
    *,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
) -> Note:
    """The note and the tags of a run, with these changes; None leaves the text as it is."""
    if record.note is None or record.tags is None:
        origin = read_plan(record, connect_for(record, home)).origin
        record = replace(record, note=origin.note, tags=tuple(origin.tags))
    tags = dict.fromkeys([*(record.tags or ()), *(tag.removeprefix("#") for tag in add)])
    gone = {tag.removeprefix("#") for tag in remove}
    words = (record.note or "") if text is None else " ".join(text.split())
    noted = replace(record, note=words, tags=tuple(tag for tag in tags if tag not in gone))
    remember(home.runs, noted)
    return Note(noted.name, words, noted.tags or ())
