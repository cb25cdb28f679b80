"""Functions that submit a run again, or one like it, and about the list of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

from rabaska.api.runs import record_of
from rabaska.domain.run_changes import Difference, TypedChanges, read_changes
from rabaska.domain.runs import Checks, Labels
from rabaska.journeys import delete as _delete
from rabaska.journeys import forget as _forget
from rabaska.journeys import note as _note
from rabaska.journeys import rerun as _rerun
from rabaska.journeys import resume as _resume
from rabaska.journeys.delete import Deletion
from rabaska.journeys.note import Note
from rabaska.journeys.resume import ResumeOptions
from rabaska.records import run_index
from rabaska.records.home import home
from rabaska.records.run_index import find, meant, remembered
from rabaska.steps.carry_like import RerunOptions
from rabaska.steps.new_run import Submitted


@dataclass(frozen=True)
class Rerun:
    """A run like another one, and in what it differs."""

    submitted: Submitted | None  # None for a dry run
    differences: tuple[Difference, ...]


def resume(
    run: str = "",
    *,
    jobs: int | None = None,
    on: str = "",
    doctor: bool = True,
    anyway: bool = False,
    **changes: Unpack[TypedChanges],
) -> Submitted:
    """Submit a stopped run again, from its newest valid checkpoint, with other requests.

    Where `on` is another cluster than the run's, it continues there under a new name.
    """
    known = meant(remembered(home().runs), run) if run else []
    elsewhere = bool(on and known) and not any(record.cluster == on for record in known)
    record = record_of(run, "" if elsewhere else on)
    goal, checks = on if elsewhere else "", Checks(doctor, anyway)
    options = ResumeOptions(jobs, read_changes(**changes), goal, checks)
    return _resume.resume(record, home(), options)


def rerun(
    run: str = "",
    *,
    arguments: Sequence[str] = (),
    with_code: str = "same",
    from_checkpoint: bool = False,
    jobs: int | None = None,
    note: str = "",
    tags: Sequence[str] = (),
    dry_run: bool = False,
    on: str = "",
    doctor: bool = True,
    anyway: bool = False,
    **changes: Unpack[TypedChanges],
) -> Rerun:
    """Start a new run like an earlier one; `arguments` replace those of the same name."""
    options = RerunOptions(
        arguments=tuple(arguments),
        new_code=with_code == "new",
        from_checkpoint=from_checkpoint,
        on=on,
        changes=read_changes(**changes),
        jobs=jobs,
        labels=Labels(note, tuple(tags)),
        checks=Checks(doctor, anyway),
    )
    record = record_of(run)
    if dry_run:
        return Rerun(None, tuple(_rerun.compare(record, home(), options)))
    found: list[Difference] = []
    submitted = _rerun.rerun(record, home(), options, shown=found.extend)
    return Rerun(submitted, tuple(found))


def delete(*runs: str, yes: bool = False, fetch: bool = False, on: str = "") -> Deletion:
    """What would be lost with these runs' folders on the cluster; deleted only with `yes`."""
    records = [record_of(run, on) for run in runs]
    if yes:
        return _delete.delete(records, home(), bring=fetch)
    return _delete.preview(records, home())


def forget(run: str, *, secrets: bool = False, on: str = "") -> None:
    """Drop a run from this computer's list. With `secrets`, delete its secrets on the cluster."""
    record = find(home().runs, run, on=on)
    if secrets:
        _forget.delete_secrets(record, home())
    run_index.forget(home().runs, record)


def note(
    run: str,
    text: str | None = None,
    *,
    tags: Sequence[str] = (),
    untags: Sequence[str] = (),
    on: str = "",
) -> Note:
    """The note and the tags of a run; written, where given."""
    return _note.note(record_of(run, on), home(), text, add=tags, remove=untags)
