"""Which run a command is about. Without click: `status` must not wait for it."""

import sys
import time
from pathlib import Path

from rabaska.errors import NoSuchRun
from rabaska.records.home import failed_attempt, home
from rabaska.records.run_index import RunRecord, find, meant, remembered


def chosen_run(name: str, on: str = "") -> RunRecord:
    """The run of this name; without one, the newest of the project in the working directory.

    With `on` it is one on that cluster, and searched for there if it is not in our list.
    """
    project = project_folder()
    try:
        record = find(home().runs, name, project=project, called=project_name, on=on)
        if not name:
            _mention_attempt(record, project)
        return record
    except NoSuchRun:
        if not on:
            raise
    from rabaska.steps import adopt

    if name:
        return adopt.adopt_one(name, on, home(), project)
    adopt.adopt_all(on, home(), project)
    return find(home().runs, project=project, on=on)


def _mention_attempt(record: RunRecord, project: Path | None) -> None:
    """Say which run is meant where somebody may believe that there is a newer one."""
    tried = failed_attempt(home(), project)
    if tried <= record.created:
        return
    from datetime import timedelta

    from rabaska.domain.amounts import say_duration

    now = time.time()
    ago, age = (
        say_duration(timedelta(seconds=max(0, int(now - then)))) for then in (tried, record.created)
    )
    sys.stderr.write(
        f"note: no run came of the last `run` or `rerun`, {ago} ago; this is {record.name}, "
        f"submitted {age} ago\n"
    )


def run_and_goal(name: str, on: str) -> tuple[RunRecord, str]:
    """The run that shall continue, and the other cluster on which it shall; "" where it is.

    `on` names the run's own cluster where it has a run of that name, else where the run goes.
    """
    if not name or not on:
        return chosen_run(name, on), ""
    known = meant(remembered(home().runs), name)
    if known and not any(record.cluster == on for record in known):
        return chosen_run(name), on
    return chosen_run(name, on), ""


def project_folder() -> Path | None:
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "rabaska.toml").is_file():
            return folder
    return None


def project_name(folder: Path) -> str:
    """Imported when it is needed: a project is seldom moved."""
    from rabaska.steps import adopt

    return adopt.project_name(folder)
