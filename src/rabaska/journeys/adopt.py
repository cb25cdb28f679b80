"""Adopt: remember runs that lie on a cluster, and were submitted from another computer.

The records of this computer only say where runs are. What was lost of them, or was never here,
is found again where the runs are.
"""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rabaska.errors import NoSuchRun
from rabaska.journeys.station import station
from rabaska.records import runs as records
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord


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
            why=f"{len(found)} run{'' if len(found) == 1 else 's'} of yours lie there",
            hint=f"`rabaska status --on {on}` lists them",
        )
    return records.adopt(home.runs, matching[0])


def _listed(on: str, home: Home, near: Path | None) -> tuple[list[RunRecord], tuple[str, ...]]:
    there = station(on, home)
    said = there.ask("runs", there.store).output.splitlines()
    told = [json.loads(line) for line in said if line.startswith("{")]
    problems = tuple(f"{each['path']}: {each['problem']}" for each in told if "problem" in each)
    return [_record(each, on, near) for each in told if "run" in each], problems


def _record(told: dict[str, Any], on: str, near: Path | None) -> RunRecord:
    project = _project(told, [Path(told["folder"])] if told["folder"] else [], near)
    return RunRecord(
        told["run"], on, told["path"], project, told["time"] or 0.0, id=told["id"],
        called=told["project"],
    )  # fmt: skip


def _project(told: dict[str, Any], folders: Sequence[Path], near: Path | None) -> str:
    """The project's folder on this computer: where it was submitted from, or where we stand."""
    likely = [*folders, *([near] if near else [])]
    return next((str(each) for each in likely if project_name(each) == told["project"]), "")


def project_name(folder: Path) -> str:
    """What the project in a folder calls itself; "" where there is none."""
    from rabaska.settings.resolved import name_for

    try:
        told = tomllib.loads((folder / "rabaska.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(told.get("name") or name_for(folder))
