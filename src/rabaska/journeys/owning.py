"""Whose results a folder here holds: those of two runs never mix, nor replace each other."""

from pathlib import Path

from rabaska.errors import WrongUse
from rabaska.node import files
from rabaska.records.runs import RunRecord
from rabaska.remote.brought import before
from rabaska.remote.unwritable import unwritable


def refuse_others(folder: Path, record: RunRecord, *, is_default: bool) -> None:
    """WrongUse when the folder holds what was fetched of another run."""
    here = before(folder)
    owner = here.owner or _by_plan(folder)
    if owner:
        is_other, name = owner.get("id") != _identity(record), owner.get("name", "")
    else:  # an older version began here; only in the run's own folder we know for which run
        is_other, name = bool(here.known) and not is_default, ""
    if is_other:
        raise WrongUse(
            f"{folder} holds the results of {_called(name, record)}",
            why=f"those of {record.name} would replace them and mix with them",
            hint="choose another folder: "
            f"`rabaska fetch {record.name} --to {_free(folder, record)}`",
        )


def claim(folder: Path, record: RunRecord) -> None:
    """Note whose results come, so that an interrupted fetch is known as well."""
    try:
        before(folder).claim({"id": _identity(record), "name": record.name})
    except OSError as problem:
        raise unwritable(problem, folder) from problem


def _identity(record: RunRecord) -> str:
    return record.id or f"{record.cluster}:{record.path}"


def _by_plan(folder: Path) -> dict[str, str]:
    """The run as its fetched plan tells, for folders that older versions fetched into."""
    try:
        plan = files.read_json(str(folder / "run" / "run.json")) or {}
    except (OSError, ValueError):
        return {}
    return {"id": str(plan["id"]), "name": str(plan.get("name", ""))} if plan.get("id") else {}


def _called(name: str, record: RunRecord) -> str:
    if not name:
        return "a run that nobody noted"
    return f"another run named {name}" if name == record.name else f"run {name}"


def _free(folder: Path, record: RunRecord) -> Path:
    """A folder that is not there yet."""
    path, number = folder / record.name, 2
    while path.exists():
        path, number = folder / f"{record.name}-{number}", number + 1
    return path
