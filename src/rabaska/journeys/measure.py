"""Measure: how fast a project goes, here and on clusters, from what its runs have shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from rabaska.domain.projects import Project
from rabaska.journeys.run import run
from rabaska.journeys.station import cluster_named
from rabaska.journeys.status import status
from rabaska.journeys.telling import Teller
from rabaska.journeys.wait import wait
from rabaska.records import reports
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord, find, remembered
from rabaska.settings.project import check_command, load

EPOCH, STEP = "epoch", "step"


@dataclass(frozen=True)
class Measured:
    """How long one step, or one epoch, of a project took on a cluster."""

    cluster: str
    run: str
    unit: str
    seconds: float
    total: float | None = None  # units of the whole training, where its command tells


def measured(project: Project, home: Home) -> tuple[Measured, ...]:
    """By this project's newest run on each cluster that told how far it came."""
    found: dict[str, Measured] = {}
    for record in remembered(home.runs):
        told = _of_run(record, home) if record.project == str(project.folder) else None
        if told:
            found[record.cluster] = told
    return tuple(found.values())


def measure(folder: Path, on: Sequence[str], span: timedelta, home: Home, teller: Teller) -> None:
    """Run the project for `span`, here and on each cluster at once; `measured` tells the rest."""
    started = [_start(folder, name, span, home, teller) for name in dict.fromkeys(("here", *on))]
    for record in started:
        wait(record, home)
        ended = status(record, home)  # its last words may have come after the end was seen
        if _of_run(record, home) is None:
            teller.warn(
                f"{record.name} did not show its pace on {record.cluster}: "
                f"{ended.reason or 'it printed no steps'}; `rabaska logs {record.name}`"
            )


def _start(folder: Path, name: str, span: timedelta, home: Home, teller: Teller) -> RunRecord:
    shortest = cluster_named(name, home).shortest or span
    limit = f"{max(span, shortest).total_seconds():.0f}s"
    brief = {"resources.walltime": limit, "chain.jobs": 1}
    project = load(folder, cluster=name, overrides=brief)
    check_command(project)
    return find(home.runs, run(project, name, home, teller, advise=False).run)


def _of_run(record: RunRecord, home: Home) -> Measured | None:
    told = reports.recalled(home.reports, record.cluster).get(record.path, {})
    forecast = told.get("forecast") or {}
    if forecast.get("seconds_each"):
        unit, seconds, total = (forecast[key] for key in ("unit", "seconds_each", "total"))
        return Measured(record.cluster, record.name, unit, seconds, total)
    seconds = (told.get("speed") or {}).get("seconds_per_step") or _by_jobs(told.get("jobs", []))
    return Measured(record.cluster, record.name, STEP, seconds) if seconds else None


def _by_jobs(jobs: Sequence[Mapping[str, Any]]) -> float:
    """Seconds for a step of the last job that made some, its start included."""
    for job in reversed(jobs):
        first, last = job.get("first_step"), job.get("last_step")
        begun, ended = job.get("begun"), job.get("ended")
        if None not in (first, last, begun, ended) and last > first and ended > begun:
            return float(ended - begun) / float(last - first)
    return 0.0
