"""The searches that this computer knows: one small file each."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from rabaska.errors import NoSuchRun
from rabaska.node import files
from rabaska.node.search import study
from rabaska.records.run_index import NAME


@dataclass(frozen=True)
class SearchRecord:
    """Where a search is."""

    name: str
    cluster: str
    path: str  # its folder, on its cluster
    project: str  # the project's folder, on this computer
    created: float  # seconds since 1970
    id: str = ""


_FIELDS = {field.name for field in fields(SearchRecord)}


def enter(folder: Path, record: SearchRecord) -> bool:
    """Remember a new search; False when another one has its name."""
    folder.mkdir(parents=True, exist_ok=True)
    return study.publish(str(folder / f"{record.name}.json"), asdict(record))


def forget(folder: Path, record: SearchRecord) -> None:
    files.remove_if_there(str(folder / f"{record.name}.json"))


def remembered(folder: Path) -> list[SearchRecord]:
    """Oldest first; a damaged record is passed over."""
    found = [_read(path) for path in folder.glob("*.json")] if folder.is_dir() else []
    return sorted((one for one in found if one), key=lambda one: (one.created, one.name))


def _read(path: Path) -> SearchRecord | None:
    try:
        content = json.loads(path.read_text())
        record = SearchRecord(**{name: content[name] for name in _FIELDS & content.keys()})
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return record if NAME.fullmatch(record.name) else None


def find(folder: Path, name: str = "", *, project: Path | None = None) -> SearchRecord:
    """The search whose name begins so; without a name the newest, of `project` if it has one."""
    records = remembered(folder)
    if not records:
        raise NoSuchRun(
            "no searches yet", hint="`rabaska search run` in a project folder starts one"
        )
    if not name:
        of_it = [one for one in records if project and one.project == str(project)]
        return (of_it or records)[-1]
    exact = [one for one in records if one.name == name]
    matching = exact or [one for one in records if one.name.startswith(name)]
    if len(matching) == 1:
        return matching[0]
    raise _unknown(name, matching or records, several=bool(matching))


def _unknown(name: str, records: Sequence[SearchRecord], *, several: bool) -> NoSuchRun:
    names = ", ".join(one.name for one in records[-5:])
    if several:
        return NoSuchRun(
            f"several searches begin with `{name}`: {names}", hint="type more of the name"
        )
    return NoSuchRun(f"no search is called `{name}`", why=f"this computer knows {names}")
