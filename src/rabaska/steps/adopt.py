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
    found, problems = _listed(on, home, near)
    known = records.remembered(home.runs)
    new = [each for each in found if not any(each.is_same(one) for one in known)]
    mine = {id(each): records.adopt(home.runs, each) for each in new}
    everything = [each for each in records.remembered(home.runs) if each.cluster == on]
    return Adopted(tuple(everything), tuple(mine.values()), problems)


def adopt_one(name: str, on: str, home: Home, near: Path | None = None) -> RunRecord:
    """The run on the cluster that is called `name`, or whose name begins so; now remembered."""
    found, _ = _listed(on, home, near)
    matching = records.meant(found, name)
    if len(matching) > 1:
        raise records.several(name, matching)
    if not matching:
        raise NoSuchRun(
            f"no run on {on} is called `{name}`",
            why=f"you have {say_count(len(found), 'run')} there",
            hint=f"`rabaska status --on {on}` lists them",
        )
    return records.adopt(home.runs, matching[0])


def _listed(on: str, home: Home, near: Path | None) -> tuple[list[RunRecord], tuple[str, ...]]:
    cluster = connect(on, home)
    said = cluster.ask("runs", cluster.store).output
    try:
        told = untrusted.read_lines(said, {"path": str})
    except untrusted.Unexpected as problem:
        raise untrusted.unusable(on, problem) from problem
    found, problems = [], []
    for each in told:
        wrong = _problem(each, cluster)
        if wrong:
            problems.append(f"{each['path']}: {wrong}")
        else:
            found.append(_record(each, on, near))
    return found, tuple(problems)


def _problem(told: dict[str, Any], cluster: ConnectedCluster) -> str:
    """Why a line tells of no run of the store; its words become paths on this computer."""
    if "problem" in told:
        return str(told["problem"])
    try:
        untrusted.checked(told, _RUN)
    except untrusted.Unexpected as problem:
        return str(problem)
    is_there = told["path"] == cluster.run_folder(told["run"])
    return "" if is_there else f"this is not the folder of {told['run']} in {cluster.store}"


def _record(told: dict[str, Any], on: str, near: Path | None) -> RunRecord:
    return RunRecord(
        told["run"],
        on,
        told["path"],
        _project(told, near),
        told["time"] or 0.0,
        id=told["id"],
        called=told["project"],
    )


def _project(told: dict[str, Any], near: Path | None) -> str:
    """The project's folder on this computer: where it was submitted from, or where we stand.

    Results will be written there, so that it must be the folder of a project of that name.
    """
    submitted_from = [Path(told["folder"])] if told["folder"].startswith("/") else []
    likely = [*submitted_from, *([near] if near else [])] if told["project"] else []
    return next((str(each) for each in likely if project_name(each) == told["project"]), "")


def project_name(folder: Path) -> str:
    """What the project in a folder calls itself; "" where there is none."""
    from rabaska.settings.resolution import name_for

    try:
        told = tomllib.loads((folder / "rabaska.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(told.get("name") or name_for(folder))
