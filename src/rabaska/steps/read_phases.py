"""What a run is doing now, from its own records and from its jobs in the queue."""

import calendar
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from rabaska.domain.jobs import JobState, JobStatus, Rank, UsedResources
from rabaska.domain.runs import Phase, Waiting
from rabaska.node.record.phase_names import BUILDING
from rabaska.records.caches import Report

Queue = Mapping[str, JobStatus]
Noun = TypeVar("Noun")

_NOT_TOLD = "it did not say why"
_WAITS = (JobState.QUEUED, JobState.HELD)


def noun(kind: type[Noun], told: Mapping[str, Any] | None) -> Noun | None:
    """What a node told, as far as this version knows the words."""
    if not told:
        return None
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: told[name] for name in known & told.keys()})


def nouns(kind: type[Noun], told: Iterable[Mapping[str, Any]]) -> tuple[Noun, ...]:
    return tuple(one for each in told if (one := noun(kind, each)))


def waiting(report: Report, queue: Queue | None, offset: int) -> Waiting | None:
    """The first job that waits, while none runs; None when none does."""
    statuses = list((queue or {}).values())
    first = next((one for one in statuses if one.state in _WAITS), None)
    if first is None or any(one.state is JobState.RUNNING for one in statuses):
        return None
    starts = moment(first.starts, offset)
    return Waiting(first.reason, _queued_since(report), starts, first.place)


def restarts(report: Report, queue: Queue | None) -> tuple[str, ...]:
    """Why the scheduler queued the newest job again, each time; it may count and not say why."""
    told = tuple(report.get("restarts", ()))
    counted = max((one.again for one in (queue or {}).values() if not one.state.over), default=0)
    return told or (_NOT_TOLD,) * counted


def _queued_since(report: Report) -> float | None:
    """Since the last job ended, or since it was submitted."""
    jobs = report.get("jobs") or []
    ended = jobs[-1].get("ended") if jobs else None
    answered = [one for one in report.get("submissions", ()) if one.get("exit_code") == 0]
    times = [one.get("time") for one in answered] + [ended]
    return max((one for one in times if one), default=None)


def starting(report: Report, queue: Queue | None, offset: int) -> Phase | None:
    """The phase of a job that has its node, and whose own record has not begun."""
    told = report.get("starting") or {}
    known = {job.get("id") for job in report.get("jobs", ())}
    for key, status in (queue or {}).items():
        if status.state is JobState.RUNNING and key not in known:
            phase = BUILDING if told.get("id") == key else "allocated"
            what = told.get("what", "") if phase == BUILDING else ""
            return Phase(phase, moment(status.starts, offset), what=what)
    return None


def phase(told: Mapping[str, Any] | None) -> Phase | None:
    return noun(Phase, told)


def used(told: Report, queue: Queue | None) -> UsedResources | None:
    """As the job counted itself; else as its scheduler did."""
    if own := noun(UsedResources, told.get("used")):
        return own
    status = (queue or {}).get(told.get("id") or "")
    return status.used if status else None


def vitals(report: Report) -> dict[str, dict[str, float]]:
    """What the nodes of the last job did in its last minutes, as far as it is numbers."""
    told = report.get("vitals")
    nodes = told.items() if isinstance(told, dict) else ()
    return {
        str(node): {
            str(name): float(value)
            for name, value in means.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        }
        for node, means in nodes
        if isinstance(means, dict)
    }


def ranks(report: Report) -> tuple[Rank, ...]:
    told = [each for each in report.get("ranks") or () if isinstance(each, dict)]
    known = [each for each in told if isinstance(each.get("rank"), int)]
    return nouns(Rank, known)


def memory_asked(report: Report) -> int:
    """Bytes that each job asks for; 0 when it leaves that to the cluster."""
    asked = ((report.get("about") or {}).get("resources") or {}).get("memory")
    return asked if isinstance(asked, int) else 0


def moment(text: str, offset: int) -> float | None:
    """Seconds since 1970; `text` is local time of a cluster `offset` seconds east, or `@…`."""
    if re.fullmatch(r"@\d{1,12}", text, re.ASCII):
        return float(text[1:])
    try:
        return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S")) - offset
    except ValueError:
        return None
