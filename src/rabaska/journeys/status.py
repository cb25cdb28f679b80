"""Status: how runs stand, with one round trip per cluster."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from rabaska.domain.jobs import JobId, JobStatus
from rabaska.domain.runs import RunState, RunStatus
from rabaska.errors import Unreachable
from rabaska.journeys.station import Station, station_of
from rabaska.records.home import Home
from rabaska.records.reports import Report, keep, recalled
from rabaska.records.runs import RunRecord, remember
from rabaska.remote.place import surely

Queue = Mapping[str, JobStatus]

_TAIL_LINES = 12


@dataclass(frozen=True)
class Answer:
    """What a cluster told of its runs."""

    reports: Mapping[str, Report]  # by run folder
    queue: Queue | None  # None: the scheduler did not answer
    complaint: str  # the scheduler's own words when it did not
    now: float  # by the cluster's clock


def status(record: RunRecord, home: Home) -> RunStatus:
    return statuses([record], home)[0]


def statuses(
    records: Sequence[RunRecord],
    home: Home,
    *,
    meanwhile: Callable[[], object] | None = None,
    again: str = "",
    explained: bool = True,
) -> list[RunStatus]:
    """How each run stands, in the order asked; clusters are asked once each.

    What the caller has to do `meanwhile` is done while the first of them thinks. For `again`
    see `Place.run`. A list that shows no explanations need not look for any.
    """
    found: dict[str, RunStatus] = {}
    for cluster in dict.fromkeys(record.cluster for record in records):
        wanted = [record for record in records if record.cluster == cluster]
        there = station_of(wanted[0], home)
        with _at_once(meanwhile):
            answer = _ask(there, wanted, home, again)
        meanwhile, again = None, ""
        learned = _learn_jobs(wanted, answer, there, home)
        if learned and there.scheduler.capabilities.asked_by_id:
            answer = _ask(there, [learned.get(each.name, each) for each in wanted], home)
        found.update(
            (each.name, _stands(each, answer, there, explained=explained)) for each in wanted
        )
    return [found[record.name] for record in records]


@contextmanager
def _at_once(work: Callable[[], object] | None) -> Iterator[None]:
    thread = threading.Thread(target=work) if work else None
    if thread:
        thread.start()
    try:
        yield
    finally:
        if thread:
            thread.join()


def _ask(there: Station, records: Sequence[RunRecord], home: Home, again: str = "") -> Answer:
    known = recalled(home.reports, there.cluster.name)
    question = _question(there, records, known)
    outcome = surely(lambda: there.run(there.quickly("survey"), feed=question, again=again))
    *lines, last = list(_json_lines(outcome.output)) or [{}]
    if "queue" not in last:
        raise Unreachable(
            f"{there.cluster.name} did not tell how its runs stand", why=outcome.complaint
        )
    reports = {line["path"]: line if "run" in line else known[line["path"]] for line in lines}
    if any("run" in line and line["mark"] for line in lines):
        keep(home.reports, there.cluster.name, {**known, **reports})
    queue, complaint = _queue(last, there)
    return Answer(reports, queue, complaint, last["now"])


def _question(there: Station, records: Sequence[RunRecord], known: Mapping[str, Report]) -> bytes:
    able = there.scheduler.capabilities
    known_jobs = [JobId("{jobs}")] if able.asked_by_id else []
    asked = {
        "runs": [
            {
                "path": record.path,
                "job": record.job,
                "mark": known.get(record.path, {}).get("mark"),
            }
            for record in records
        ],
        "tail": _TAIL_LINES,
        "queue": there.scheduler.status_command(known_jobs),
        "answers": [0, *able.partial_answers],
        "history": there.scheduler.history_command([JobId("{jobs}")]),
    }
    return json.dumps(asked).encode()


def _json_lines(text: str) -> Iterable[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def _queue(told: Mapping[str, Any], there: Station) -> tuple[Queue | None, str]:
    """History first, the queue over it: what is still in the queue is newer."""
    queue, history = told["queue"], told["history"]
    if queue["exit_code"] not in (0, *there.scheduler.capabilities.partial_answers):
        return None, queue["complained"].strip() or queue["said"].strip()
    found: dict[str, JobStatus] = {}
    if history and history["exit_code"] == 0:
        found.update(there.scheduler.read_history(history["said"]))
    return {**found, **there.scheduler.read_status(queue["said"])}, ""


def _learn_jobs(
    records: Sequence[RunRecord], answer: Answer, there: Station, home: Home
) -> dict[str, RunRecord]:
    """Remember the jobs of runs whose submission was answered when we were gone."""
    from rabaska.journeys.reading import newest_job

    learned: dict[str, RunRecord] = {}
    for record in records:
        report = answer.reports.get(record.path, {})
        if record.job and report.get("done"):
            continue  # whatever job it was, nobody will ask for it again
        job = newest_job(report, there)
        if job is not None and job.native != record.job:
            learned[record.name] = replace(record, job=job.native)
            remember(home.runs, learned[record.name])
    return learned


def _stands(record: RunRecord, answer: Answer, there: Station, *, explained: bool) -> RunStatus:
    from rabaska.journeys.reading import newest_job, read_run  # not needed to ask

    report = answer.reports[record.path]
    if not report["about"] and report["problems"] == ["there is no such folder"]:
        return _missing(record, answer.now)
    job = newest_job(report, there)
    # What is finished has nothing in the queue, which may hold thousands of others.
    mine = {} if report.get("done") else _jobs_of(job, answer.queue)
    found = read_run(record, report, mine, answer.now, explained=explained)
    stands = replace(found, job=str(job or ""))
    if mine is None and answer.complaint and stands.state is RunState.UNKNOWN:
        stands = replace(stands, problems=(*stands.problems, f"it said: {answer.complaint}"))
    return stands


def _jobs_of(job: JobId | None, queue: Queue | None) -> Queue | None:
    """The part of the queue that is this run's newest submission."""
    if queue is None:
        return None
    if job is None:
        return {}
    return {key: each for key, each in queue.items() if job.holds(key)}


def _missing(record: RunRecord, now: float) -> RunStatus:
    gone = f"its folder {record.path} is not there"
    return RunStatus(
        name=record.name,
        cluster=record.cluster,
        state=RunState.UNKNOWN if record.job else RunState.INTERRUPTED,
        reason=gone if record.job else "it was never submitted",
        hint=f"`rabaska forget {record.name}` drops it from the list",
        path=record.path,
        now=now,
    )
