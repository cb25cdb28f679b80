"""The run that a command means."""

from pathlib import Path

from rabaska.errors import NoSuchRun
from rabaska.records.home import home
from rabaska.records.runs import RunRecord, find


def chosen_run(name: str, on: str = "") -> RunRecord:
    """The run that `name` means; without one, the newest of the project we stand in.

    With `on` it is one on that cluster, and looked for there if this computer does not know it.
    """
    project = project_folder()
    try:
        return find(home().runs, name, project=project, called=project_name, on=on)
    except NoSuchRun:
        if not on:
            raise
    from rabaska.journeys import adopt

    if name:
        return adopt.adopt_one(name, on, home(), project)
    adopt.adopt_all(on, home(), project)
    return find(home().runs, project=project, on=on)


def project_folder() -> Path | None:
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "rabaska.toml").is_file():
            return folder
    return None


def project_name(folder: Path) -> str:
    """Imported when it is asked for: a project is seldom moved."""
    from rabaska.journeys import adopt

    return adopt.project_name(folder)
