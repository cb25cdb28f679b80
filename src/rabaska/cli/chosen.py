"""The run that a command means."""

from pathlib import Path

from rabaska.records.home import home
from rabaska.records.runs import RunRecord, find


def chosen_run(name: str) -> RunRecord:
    """The run that `name` means; without one, the newest of the project we stand in."""
    return find(home().runs, name, project=_project_folder())


def _project_folder() -> Path | None:
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "rabaska.toml").is_file():
            return folder
    return None
