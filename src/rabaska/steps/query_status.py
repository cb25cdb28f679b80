"""Query the status of runs, with one round trip per cluster."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from rabaska.domain import untrusted
from rabaska.domain.jobs import Capabilities, JobId, JobState, JobStatus
from rabaska.errors import Unreachable
from rabaska.records.caches import Report, cache_reports, cached_reports
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, remember
from rabaska.remote.place import surely
from rabaska.schedulers.protocol import Scheduler
from rabaska.steps.connect import ConnectedCluster, connect_for
from rabaska.steps.status_report import LAST, LINE, report

if TYPE_CHECKING:
    # Imported while the cluster thinks: it takes as long as to ask.
    from rabaska.domain.runs import RunStatus
    from rabaska.steps.read_status import SchedulerAnswer

Queue = Mapping[str, JobStatus]

_TAIL_LINES = 12
_JOBS = "{jobs}"  # what the other side, node.login.status_query, puts ids for


class Listener(Protocol):
    """Who wants the numbers of runs as well, and keeps what was heard."""

    def have(self, record: RunRecord) -> dict[str, int] | None:
        """The bytes of each file that are here; None where none are wanted."""

    def take(self, record: RunRecord, new: Mapping[str, Any]) -> None:
        """What these files hold more."""

    def heard(self, cluster: str, reports: Mapping[str, Report], last: Report) -> None:
        """All that the cluster told, apart from numbers."""


def status(record: RunRecord, home: Home) -> "RunStatus":
    return statuses([record], home)[0]


def statuses(
    records: Sequence[RunRecord],
    home: Home,
    *,
    meanwhile: Callable[[], object] | None = None,
    again: str = "",
    explained: bool = True,
    listener: Listener | None = None,
) -> "list[RunStatus]":
    """How each run stands, in the order asked; clusters are asked once each.

    What the caller has to do `meanwhile` is done while the first of them thinks. For `again`
    see `Place.run`. A list that shows no explanations need not look for any. A `listener` gets
    the numbers that are new.
    """
    found: dict[RunRecord, RunStatus] = {}
    for name in dict.fromkeys(record.cluster for record in records):
        wanted = [record for record in records if record.cluster == name]
        cluster = connect_for(wanted[0], home)
        answer = _ask(cluster, wanted, home, meanwhile, again, listener)
        meanwhile, again = None, ""
        learned = _learn_jobs(wanted, answer, cluster, home)
        if learned and cluster.scheduler.capabilities.asked_by_id:
            answer = _ask(cluster, [learned.get(each, each) for each in wanted], home)
        found.update(standing(wanted, answer, cluster, explained=explained))
    return [found[record] for record in records]


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


def _ask(
    cluster: ConnectedCluster,
    records: Sequence[RunRecord],
    home: Home,
    meanwhile: Callable[[], object] | None = None,
    again: str = "",
    listener: Listener | None = None,
) -> "SchedulerAnswer":
    known = _usable(cached_reports(home.reports, cluster.name), records)
    script = cluster.quickly("status", json.dumps(_about_queue(cluster.scheduler)))
    have = {record.path: listener.have(record) for record in records} if listener else {}
    question = "".join(_about_run(record, known, have) for record in records).encode()
    with _at_once(meanwhile):
        outcome = surely(lambda: cluster.run(script, feed=question, again=again))
    try:
        *lines, last = untrusted.read_lines(outcome.output, {}) or [{}]
        if "queue" not in last:
            raise Unreachable(
                f"{cluster.name} did not report the status of its runs", why=outcome.complaint
            )
        untrusted.checked(last, LAST)
        new = _new_numbers(untrusted.checked(lines, [LINE]))
        reports = _reports(lines, known, records)
    except untrusted.Unexpected as problem:
        raise untrusted.unusable(cluster.name, problem) from problem
    if any("run" in line and line.get("mark") for line in lines):
        before = cached_reports(home.reports, cluster.name)
        cache_reports(home.reports, cluster.name, {**before, **reports})
    if listener:
        for record in records:
            listener.take(record, new.get(record.path, {}))
        listener.heard(cluster.name, reports, last)
    return scheduler_answer(reports, last, cluster)


def scheduler_answer(
    reports: Mapping[str, Report], last: Report, cluster: ConnectedCluster
) -> "SchedulerAnswer":
    """The reports of runs together with what the queue said, in the last line of an answer."""
    from rabaska.steps.read_status import SchedulerAnswer

    queue, complaint = read_queue(last["queue"], last["history"], cluster.scheduler)
    return SchedulerAnswer(reports, queue, complaint, last["now"], last.get("offset", 0))


def _new_numbers(lines: Sequence[Report]) -> dict[str, Report]:
    """Taken out of the lines: reports are kept, and numbers elsewhere."""
    found: dict[str, Report] = {}
    for line in lines:
        if new := line.pop("new", None):
            found[line["path"]] = new
    return found


def _about_queue(scheduler: Scheduler) -> dict[str, Any]:
    return {
        "tail": _TAIL_LINES,
        "queue": queue_question(scheduler),
        "answers": [0, *scheduler.capabilities.partial_answers],
        "history": scheduler.history_command([JobId(_JOBS)]),
    }


def queue_question(scheduler: Scheduler) -> list[str]:
    """The command that tells of jobs; our program there puts their ids into it, where it must."""
    by_id = scheduler.capabilities.asked_by_id
    return scheduler.status_command([JobId(_JOBS)] if by_id else [])


def _about_run(
    record: RunRecord, known: Mapping[str, Report], have: Mapping[str, dict[str, int] | None]
) -> str:
    mark = known.get(record.path, {}).get("mark")
    question: Report = {"path": record.path, "ids": record.job_id, "mark": mark}
    if have.get(record.path) is not None:
        question["have"] = have[record.path]
    return json.dumps(question) + "\n"


def _usable(known: Mapping[str, Report], records: Sequence[RunRecord]) -> dict[str, Report]:
    """What is remembered of these runs; what an older version wrote, and is damaged, is not."""
    found = {}
    for path in (record.path for record in records if record.path in known):
        with suppress(untrusted.Unexpected):
            found[path] = report(known[path])
    return found


def _reports(
    lines: Sequence[Report], known: Mapping[str, Report], records: Sequence[RunRecord]
) -> dict[str, Report]:
    """What was told of each run; a line without a report says that the last one still holds."""
    # A question that was asked ahead may name runs that were forgotten since.
    told = {line["path"]: line for line in lines}
    reports = {}
    for path in (record.path for record in records):
        if "run" in told.get(path, {}):
            reports[path] = report(told[path])
        elif path in told and path in known:
            reports[path] = known[path]
        else:
            raise untrusted.Unexpected(f"it has no report of {path}")
    return reports


def read_queue(
    queue: Mapping[str, Any], history: Mapping[str, Any] | None, scheduler: Scheduler
) -> tuple[Queue | None, str]:
    """History first, the queue over it: what is still in the queue is newer.

    A queue that complained, or said nothing at all, is not an empty one.
    """
    able = scheduler.capabilities
    answers = (0, *able.partial_answers)
    if queue["exit_code"] not in answers or not able.is_answer(queue["said"]):
        return None, queue["complained"].strip() or queue["said"].strip()
    found: dict[str, JobStatus] = {}
    if history and history["exit_code"] in answers:
        found.update(scheduler.read_history(history["said"]))
    found.update(scheduler.read_status(queue["said"]))
    missing = [job for each in queue.get("asked", ()) if (job := JobId(each)).key not in found]
    not_told = {job.key: _not_told(queue) for job in missing if not _is_gone(job, queue, able)}
    return {**not_told, **found}, ""


def _is_gone(job: JobId, queue: Mapping[str, Any], able: Capabilities) -> bool:
    """Whether the queue said of a job that it does not know it, rather than nothing.

    Slurm's qstat has an exit code for that and no words.
    """
    if not queue["complained"].strip():
        return queue["exit_code"] in able.partial_answers
    named = re.compile(rf"(?<!\d){re.escape(job.key)}(?!\d)")
    lines = queue["complained"].splitlines()
    return any(able.is_gone(line) and named.search(line) for line in lines)


def _not_told(queue: Mapping[str, Any]) -> JobStatus:
    said = " ".join(queue["complained"].split())
    why = "the queue did not tell of its job"
    return JobStatus(JobState.UNKNOWN, "", f"{why}: {said}" if said else why)


def _learn_jobs(
    records: Sequence[RunRecord], answer: "SchedulerAnswer", cluster: ConnectedCluster, home: Home
) -> dict[RunRecord, RunRecord]:
    """Remember the jobs of runs whose submission was answered when we were gone."""
    from rabaska.steps.read_status import newest_job

    learned: dict[RunRecord, RunRecord] = {}
    for record in records:
        report = answer.reports.get(record.path, {})
        if record.job_id and report.get("done"):
            continue  # whatever job it was, nobody will ask for it again
        job = newest_job(report, cluster)
        if job is not None and job.native != record.job_id:
            learned[record] = replace(record, job_id=job.native)
            remember(home.runs, learned[record])
    return learned


def standing(
    records: Sequence[RunRecord],
    answer: "SchedulerAnswer",
    cluster: ConnectedCluster,
    *,
    explained: bool,
) -> "dict[RunRecord, RunStatus]":
    """What an answer comes to, for each run."""
    from rabaska.steps.read_status import state_of

    return {
        each: _labelled(each, state_of(each, answer, cluster, explained=explained))
        for each in records
    }


def _labelled(record: RunRecord, told: "RunStatus") -> "RunStatus":
    """With its names in what to do, and its note and tags: ours, else as it was submitted."""
    from rabaska.domain.run_state import with_names

    note, tags, names = record.note, record.tags, (record.name, record.cluster)
    return replace(
        told,
        hint=with_names(told.hint, *names),
        explanations=tuple((why, with_names(fix, *names)) for why, fix in told.explanations),
        note=told.about.get("note", "") if note is None else note,
        tags=tuple(told.about.get("tags", ())) if tags is None else tags,
        created=record.created,
    )
