"""Snapshots: the code of a project as it is now, without what is no code."""

from rabaska.domain.projects import Project
from rabaska.journeys.telling import Teller
from rabaska.packing.snapshot import Snapshot, snapshot
from rabaska.records.home import Home
from rabaska.remote.git import own_files


def take_snapshot(project: Project, home: Home, teller: Teller) -> Snapshot:
    unwanted = not_code(project, home)
    taken = snapshot(project.folder, home.store / "code", exclude=unwanted, listed=own_files)
    teller.step(f"code: {taken.files} files, snapshot {taken.digest[:12]}")
    return taken


def not_code(project: Project, home: Home) -> tuple[str, ...]:
    """Datasets travel as packs; fetched results, and what we remember, stay at home."""
    apart = [home.folder, *(path for dataset in project.datasets for path in dataset.paths)]
    inside = [
        path.relative_to(project.folder).as_posix()
        for path in apart
        if path.is_relative_to(project.folder)
    ]
    return (*project.exclude, *inside, "results", *project.keep)
