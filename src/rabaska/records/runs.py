"""The index of runs: one small file each, newest last."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from rabaska.errors import NoSuchRun
from rabaska.node import files


@dataclass(frozen=True)
class RunRecord:
    """Where a run is, so that a later command can find it."""

    name: str
    cluster: str
    path: str  # the run folder, on its cluster
    project: str  # the project's folder, on this computer
    created: float  # seconds since 1970
    job: str = ""  # the newest submission, as the cluster named it


def remember(folder: Path, record: RunRecord) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files.write_json(str(folder / f"{record.name}.json"), asdict(record))


def forget(folder: Path, name: str) -> None:
    (folder / f"{name}.json").unlink(missing_ok=True)


def remembered(folder: Path) -> list[RunRecord]:
    """Every run this computer knows, oldest first; a damaged record is passed over."""
    # Names, not paths, which take twice as long: there may be hundreds.
    names = os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208
    found = (_read(f"{folder}/{name}") for name in names if name.endswith(".json"))
    return sorted((record for record in found if record), key=lambda record: record.created)


def _read(path: str) -> RunRecord | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return RunRecord(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None


def find(folder: Path, name: str = "", *, project: Path | None = None) -> RunRecord:
    """The run called `name`, or whose name begins so; without a name the newest one.

    The newest run is looked for in `project` first: that is the one a person standing
    there means.
    """
    known = remembered(folder)
    if not known:
        raise NoSuchRun(
            "there are no runs yet", hint="`rabaska run` in a project folder starts one"
        )
    if not name:
        of_project = [record for record in known if project and record.project == str(project)]
        return (of_project or known)[-1]
    exact = [record for record in known if record.name == name]
    matching = exact or [record for record in known if record.name.startswith(name)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = ", ".join(record.name for record in matching[-5:])
        raise NoSuchRun(f"several runs begin with `{name}`: {names}", hint="type more of the name")
    raise NoSuchRun(
        f"no run is called `{name}`",
        why=f"this computer knows {len(known)}, the newest is {known[-1].name}",
        hint="`rabaska status --all` lists them",
    )
