"""Status: how runs stand, with one round trip per cluster."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from rabaska.domain.jobs import JobId, JobStatus
from rabaska.domain.runs import Checkpoint, Link, RunState, RunStatus
from rabaska.domain.standing import Facts, standing
from rabaska.errors import Unreachable
from rabaska.journeys.station import Station, station_of
from rabaska.knowledge.failures import explain
from rabaska.records.home import Home
from rabaska.records.runs import RunRecord
from rabaska.remote.place import quoted

Report = dict[str, Any]

_QUEUE_FOLLOWS = "-- rabaska: the queue follows --"
_TAIL_LINES = 12


def status(record: RunRecord, home: Home) -> RunStatus:
    return statuses([record], home)[0]


def statuses(records: Sequence[RunRecord], home: Home) -> list[RunStatus]:
    """How each run stands, in the order asked; clusters are asked once each."""
    found: dict[str, RunStatus] = {}
    for cluster in dict.fromkeys(record.cluster for record in records):
        wanted = [record for record in records if record.cluster == cluster]
        there = station_of(wanted[0], home)
        found.update((each.name, each) for each in _ask(there, wanted))
    return [found[record.name] for record in records]


def _ask(there: Station, records: Sequence[RunRecord]) -> Iterable[RunStatus]:
    reports, queue = _reports_and_queue(there, [record.path for record in records])
    for record in records:
        report = reports.get(record.path)
        if report is None:
            yield _missing(record)
        else:
            yield _run_status(record, report, _jobs_of(report, there, queue))


def _reports_and_queue(
    there: Station, folders: Sequence[str]
) -> tuple[dict[str, Report], Mapping[str, JobStatus] | None]:
    """What the run folders say and what the queue says, in one round trip."""
    report = quoted([*there.node, "report", "--tail", str(_TAIL_LINES), *folders])
    queue = quoted(there.scheduler.status_command([]))
    outcome = there.run(f"{report}; echo; echo {quoted([_QUEUE_FOLLOWS])}; {queue}")
    told, _, queued = outcome.output.partition(_QUEUE_FOLLOWS)
    reports = {report["path"]: report for report in _json_lines(told)}
    if not reports and folders and outcome.exit_code != 0:
        raise Unreachable(
            f"{there.cluster.name} did not tell how its runs stand", why=outcome.complaint
        )
    return reports, there.scheduler.read_status(queued) if outcome.exit_code == 0 else None


def _json_lines(text: str) -> Iterable[Report]:
    for line in text.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def _jobs_of(
    report: Report, there: Station, queue: Mapping[str, JobStatus] | None
) -> Mapping[str, JobStatus] | None:
    """The part of the queue that is this run's newest submission."""
    if queue is None:
        return None
    job = newest_job(report, there)
    if job is None:
        return {}
    element = f"{job.native}_"
    return {
        name: each for name, each in queue.items() if name == job.native or name.startswith(element)
    }


def newest_job(report: Report, there: Station) -> JobId | None:
    """The id the scheduler gave to the newest submission it answered."""
    for submission in reversed(report.get("jobs", [])):
        if submission.get("exit_code") == 0:
            return there.scheduler.read_job_id(submission.get("said", ""))
    return None


def _missing(record: RunRecord) -> RunStatus:
    return RunStatus(
        name=record.name,
        cluster=record.cluster,
        state=RunState.UNKNOWN,
        reason=f"its folder {record.path} is not there",
        hint=f"`rabaska forget {record.name}` drops it from the list",
    )


def _run_status(
    record: RunRecord, report: Report, queue: Mapping[str, JobStatus] | None
) -> RunStatus:
    stands = standing(_facts(report, queue))
    links = tuple(_link(each) for each in report.get("links", []))
    tail = report.get("tail", "")
    failed = stands.state in (RunState.FAILED, RunState.INTERRUPTED)
    known = explain(f"{tail}\n{stands.reason}", stage="run") if failed else ()
    found = report.get("checkpoint")
    return RunStatus(
        name=record.name,
        cluster=record.cluster,
        state=stands.state,
        reason=stands.reason,
        hint=stands.hint,
        links_asked=report.get("links_asked", 0),
        walltime=timedelta(seconds=report.get("walltime") or 0),
        links=links,
        checkpoint=Checkpoint(**found) if found else None,
        metrics=report.get("metrics", {}),
        tail=tail,
        explanations=tuple((failure.meaning, failure.fix) for failure in known[:2]),
        about=report.get("about") or {},
        path=record.path,
        problems=tuple(report.get("problems", ())),
    )


def _facts(report: Report, queue: Mapping[str, JobStatus] | None) -> Facts:
    submissions = report.get("jobs", [])
    last = report["links"][-1] if report.get("links") else {}
    verdict = report.get("verdict") or {}
    return Facts(
        done=bool(report.get("done")),
        stop=bool(report.get("stop")),
        decision=verdict.get("decision", "not begun"),
        reason=verdict.get("reason", ""),
        holder_alive=last.get("holder_alive") if not last.get("ended") else False,
        submitted=any(each.get("exit_code") == 0 for each in submissions),
        submitted_ago=time.time() - max((each.get("time", 0) for each in submissions), default=0),
        queue=queue,
    )


def _link(told: Report) -> Link:
    return Link(
        number=told["link"],
        job=told.get("job") or "",
        host=told.get("host") or "",
        pid=told.get("pid"),
        began=told.get("begun"),
        ended=told.get("ended"),
        how="" if told.get("how") == "running" else told.get("how") or "",
        reason=told.get("reason") or "",
        exit_code=told.get("exit_code"),
        signal=told.get("signal"),
        first_step=told.get("first_step"),
        last_step=told.get("last_step"),
        steps_redone=told.get("steps_redone"),
        epoch=told.get("epoch"),
        resumed_from=told.get("resumed_from") or "",
    )
