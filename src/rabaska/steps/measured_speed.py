"""How fast earlier runs of a project went: seconds for each step and for each epoch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rabaska.domain.projects import Project
from rabaska.records import caches
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, remembered

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
    found: dict[str, tuple[Measured, ...]] = {}
    for record in of_project(project, home):
        if told := of_run(record, home):
            found[record.cluster] = told
    return tuple(each for several in found.values() for each in several)


def of_project(project: Project, home: Home) -> list[RunRecord]:
    """Its runs, the newest last."""
    return [each for each in remembered(home.runs) if each.project == str(project.folder)]


def of_run(record: RunRecord, home: Home) -> tuple[Measured, ...]:
    """By what its status told last: at most one for each unit."""
    told = caches.cached_reports(home.reports, record.cluster).get(record.path, {})
    found: dict[str, Measured] = {}
    for unit, seconds, total in _paces(told):
        if seconds and seconds > 0:
            found.setdefault(unit, Measured(record.cluster, record.name, unit, seconds, total))
    return tuple(found.values())


def _paces(told: Mapping[str, Any]) -> Iterator[tuple[str, float | None, float | None]]:
    """Unit, seconds and total, the surest first."""
    forecast, jobs = told.get("forecast") or {}, told.get("jobs") or []
    if forecast.get("seconds_each"):
        yield forecast["unit"], forecast["seconds_each"], forecast["total"]
    # A run that is over has no forecast, but has shown how long its epochs take.
    yield EPOCH, (told.get("saving") or {}).get("epoch"), None
    yield EPOCH, _by_epochs(jobs), None
    yield STEP, (told.get("speed") or {}).get("seconds_per_step"), None
    yield STEP, _by_steps(jobs), None


def _by_steps(jobs: Sequence[Mapping[str, Any]]) -> float:
    """Seconds for a step of the last job that made some, its start included."""
    for job in reversed(jobs):
        first, last = job.get("first_step"), job.get("last_step")
        begun, ended = job.get("begun"), job.get("ended")
        if None not in (first, last, begun, ended) and last > first and ended > begun:
            return float(ended - begun) / float(last - first)
    return 0.0


def _by_epochs(jobs: Sequence[Mapping[str, Any]]) -> float:
    """Seconds for an epoch of the last job that reached another one, its start included."""
    reached = [0.0, *(float(job.get("epoch") or 0) for job in jobs)]
    for job, before, at in reversed(list(zip(jobs, reached, reached[1:], strict=False))):
        begun, ended = job.get("begun"), job.get("ended")
        if at > before and begun is not None and ended is not None and ended > begun:
            return float((ended - begun) / (at - before))
    return 0.0
