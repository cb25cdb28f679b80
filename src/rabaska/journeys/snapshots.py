"""Snapshots: the code of a project as it is now, without what is no code."""

import os
import posixpath
from pathlib import Path

from rabaska.domain.projects import Project
from rabaska.journeys.secrets import known
from rabaska.journeys.telling import Teller
from rabaska.packing.snapshot import Snapshot, not_code, snapshot
from rabaska.records.home import Home
from rabaska.remote.git import own_files
from rabaska.settings.project import FILE


def take_snapshot(project: Project, home: Home, teller: Teller) -> Snapshot:
    code = taken(project, home, home.store / "code", teller)
    teller.step(f"code: {code.files} files, snapshot {code.digest[:12]}")
    return code


def taken(project: Project, home: Home, folder: Path, teller: Teller) -> Snapshot:
    """A snapshot in `folder`; what may hold secrets stays behind, and is named."""
    code = snapshot(
        project.folder,
        folder,
        exclude=not_code(project, home.folder),
        include=project.include,
        listed=own_files,
        secrets=known(project.environment, os.environ),
    )
    files = [name for name in code.withheld if posixpath.basename(name) != FILE]
    if files:
        teller.warn(
            f"not sent, for it may hold secrets: {', '.join(files)}; `secrets` under "
            "[environment] hands keys to the program, `include` under [code] sends the file"
        )
    for name in {*code.withheld} - {*files}:
        teller.warn(
            f"{name} is not sent with the code, for a secret in it could not be taken out; name "
            "the variable in `secrets` under [environment] instead"
        )
    return code
