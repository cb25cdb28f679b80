"""Adopt: remember runs that lie on a cluster, and were submitted from another computer.

The records of this computer only say where runs are. What was lost of them, or was never here,
is found again where the runs are.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rabaska.domain import untrusted
from rabaska.domain.amounts import say_count
from rabaska.errors import NoSuchRun
from rabaska.records import run_index as records
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.steps.connect import ConnectedCluster, connect

# What the node side answers; see `listing` there.
_RUN = {
    "run": records.NAME,
    "path": untrusted.PATH,
    "id": records.ID,
    "project": str,
    "folder": str,
    "time": (untrusted.TIME, None),
}


@dataclass(frozen=True)
class Adopted:
    """The runs on a cluster, those that were not known before, and folders that are no runs."""

    runs: tuple[RunRecord, ...]
    new: tuple[RunRecord, ...] = ()
    problems: tuple[str, ...] = ()


def adopt_all(on: str, home: Home, near: Path | None = None) -> Adopted:
    """Remember every run on the cluster; those of the project in `near` belong to it."""
    listed, problems = _listed(on, home, near)
    known = records.remembered(home.runs)
    new = [record for record in listed if not any(record.is_same(one) for one in known)]
    mine = {id(record): records.adopt(home.runs, record) for record in new}
    everything = [record for record in records.remembered(home.runs) if record.cluster == on]
    return Adopted(tuple(everything), tuple(mine.values()), problems)


def adopt_one(name: str, on: str, home: Home, near: Path | None = None) -> RunRecord:
    """The run on the cluster that is called `name`, or whose name begins so; now remembered."""
    listed, _ = _listed(on, home, near, trials=True)
    matching = records.meant(listed, name)
    if len(matching) > 1:
        raise records.several(name, matching)
    if not matching:
        raise NoSuchRun(
            f"no run on {on} is called `{name}`",
            why=f"you have {say_count(len(listed), 'run')} there",
            hint=f"`rabaska status --on {on}` lists them",
        )
    return records.adopt(home.runs, matching[0])


def _listed(
    on: str, home: Home, near: Path | None, *, trials: bool = False
) -> tuple[list[RunRecord], tuple[str, ...]]:
    cluster = connect(on, home)
    said = cluster.ask("runs", cluster.store, *(["trials"] if trials else [])).output
    try:
        lines = untrusted.read_lines(said, {"path": str})
    except untrusted.Unexpected as problem:
        raise untrusted.unusable(on, problem) from problem
    runs, problems = [], []
    for line in lines:
        wrong = _problem(line, cluster)
        if wrong:
            problems.append(f"{line['path']}: {wrong}")
        else:
            runs.append(_record(line, on, near))
    return runs, tuple(problems)


def _problem(line: dict[str, Any], cluster: ConnectedCluster) -> str:
    """Why a line tells of no run of the store; its words become paths on this computer."""
    if "problem" in line:
        return str(line["problem"])
    try:
        untrusted.checked(line, _RUN)
    except untrusted.Unexpected as problem:
        return str(problem)
    is_there = line["path"] == cluster.run_folder(line["run"])
    return "" if is_there else f"this is not the folder of {line['run']} in {cluster.store}"


def _record(line: dict[str, Any], on: str, near: Path | None) -> RunRecord:
    return RunRecord(
        line["run"],
        on,
        line["path"],
        _project(line, near),
        line["time"] or 0.0,
        id=line["id"],
        called=line["project"],
    )


def _project(line: dict[str, Any], near: Path | None) -> str:
    """The project's folder on this computer: where it was submitted from, or where we stand.

    Results will be written there, so that it must be the folder of a project of that name.
    """
    submitted_from = [Path(line["folder"])] if line["folder"].startswith("/") else []
    likely = [*submitted_from, *([near] if near else [])] if line["project"] else []
    return next((str(folder) for folder in likely if project_name(folder) == line["project"]), "")


def project_name(folder: Path) -> str:
    """What the project in a folder calls itself; "" where there is none."""
    from rabaska.settings.resolution import name_for

    try:
        settings = tomllib.loads((folder / "rabaska.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(settings.get("name") or name_for(folder))
