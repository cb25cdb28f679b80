"""Note: what its user says of a run, kept in this computer's list."""

from collections.abc import Sequence
from dataclasses import replace

from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, remember


def write_note(
    record: RunRecord,
    home: Home,
    text: str | None = None,
    *,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
) -> RunRecord:
    """The run with its new note and tags; a `text` of None leaves the note as it is."""
    tags = dict.fromkeys([*record.tags, *(tag.removeprefix("#") for tag in add)])
    kept = tuple(tag for tag in tags if tag not in {tag.removeprefix("#") for tag in remove})
    noted = replace(record, note=record.note if text is None else text.strip(), tags=kept)
    if noted != record:
        remember(home.runs, noted)
    return noted
