"""Status: how runs stand, with one round trip per cluster."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rabaska.domain import untrusted
from rabaska.domain.jobs import Capabilities, JobId, JobState, JobStatus
from rabaska.domain.untrusted import TIME, Unexpected, checked
from rabaska.errors import Unreachable
from rabaska.records.caches import Report, cache_reports, cached_reports
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord, remember
from rabaska.remote.place import surely
from rabaska.schedulers.protocol import Scheduler
from rabaska.steps.connect import ConnectedCluster, connect_for


def _step(value: object) -> bool:
    """A number that a program printed, however large."""
    return isinstance(value, int) and not isinstance(value, bool)


_TEXT = (str, None)
_NUMBER = (int, None)
_WHEN = (TIME, None)
_JOB = {
    "job": int,
    "id?": _TEXT,
    "host?": _TEXT,
    "pid?": _NUMBER,
    "begun?": _WHEN,
    "ended?": _WHEN,
    "how?": _TEXT,
    "reason?": _TEXT,
    "exit_code?": _NUMBER,
    "signal?": _NUMBER,
    "first_step?": (_step, None),
    "last_step?": (_step, None),
    "steps_redone?": (_step, None),
    "epoch?": (float, None),
    "resumed_from?": _TEXT,
    "checkpoint_found?": _TEXT,
    "started_over?": _TEXT,
    "beginning_not_known?": _TEXT,
    "heartbeat?": _WHEN,
    "holder_alive?": (bool, None),
}
_SUBMISSION = {
    "exit_code?": _NUMBER,
    "said?": str,
    "complained?": _TEXT,
    "time?": TIME,
    "submission?": _TEXT,
}
_UNANSWERED = {
    "state": str,
    "time?": _WHEN,
    "command?": _TEXT,
    "host?": _TEXT,
    "said?": _TEXT,
    "findable?": bool,
}
_REPORT = {
    "path": str,
    "about": {"unmet?": [str]},
    "problems": [str],
    "id?": _TEXT,
    "mark?": _TEXT,
    "walltime?": _WHEN,
    "jobs_requested?": _NUMBER,
    "submissions?": [_SUBMISSION],
    "jobs?": [_JOB],
    "verdict?": ({"decision?": str, "reason?": str, "hint?": str}, None),
    "tail?": str,
    "metrics?": {str: (float, None)},
    "not_watched?": str,
    "begins_again?": str,
    "left_running?": int,
    "submitting?": (_UNANSWERED, None),
}
# What a run can do without, and what is computed of what its program printed.
_ASIDE: dict[str, Any] = {
    "checkpoint": {"path": str, "size": int, "written": TIME},
    "speed": {
        "at": TIME,
        "steps": int,
        "epochs": int,
        "seconds_per_step": TIME,
        "waiting": float,
        "samples_per_second?": (float, None),
        "saves?": int,
    },
    "forecast": {
        "unit": str,
        "done": TIME,
        "total": _WHEN,
        "seconds_each": TIME,
        "per_job": TIME,
        "jobs": _NUMBER,
        "finishes": _WHEN,
        "stuck?": str,
        "hint?": str,
        "jobs_there?": int,
        "grows_to?": int,
    },
    "extended": {"jobs": int, "why": str},
    "data": [{"name": str, "bytes": int, "where": str, "seconds": TIME, "arriving?": bool}],
}
_SAID = {"exit_code": int, "said": str, "complained": str, "asked?": [str]}

LINE = {"path": str}
LAST = {"queue": _SAID, "history": (_SAID, None), "now": TIME}


def report(told: Mapping[str, Any]) -> Report:
    """A report that can be used; what it tells aside and cannot be used is named and left out."""
    checked(told, _REPORT)
    unusable = {name: why for name in _ASIDE if (why := _wrong(told.get(name), _ASIDE[name]))}
    problems = [*told["problems"], *(f"its {name}: {why}" for name, why in unusable.items())]
    kept = {name: value for name, value in told.items() if name not in unusable}
    kept["data"] = kept.get("data") or []
    saved = kept.get("checkpoint")
    if saved:
        kept["checkpoint"] = {name: saved[name] for name in _ASIDE["checkpoint"]}
    return {**kept, "problems": problems}


def _wrong(value: Any, shape: Any) -> str:
    try:
        checked(value, (shape, None))
    except Unexpected as problem:
        return str(problem)
    return ""


if TYPE_CHECKING:
    # Imported while the cluster thinks: it takes as long as to ask.
    from rabaska.domain.runs import RunStatus
    from rabaska.steps.read_status import SchedulerAnswer

Queue = Mapping[str, JobStatus]

_TAIL_LINES = 12


def status(record: RunRecord, home: Home) -> "RunStatus":
    return statuses([record], home)[0]


def statuses(
    records: Sequence[RunRecord],
    home: Home,
    *,
    meanwhile: Callable[[], object] | None = None,
    again: str = "",
    explained: bool = True,
) -> "list[RunStatus]":
    """How each run stands, in the order asked; clusters are asked once each.

    What the caller has to do `meanwhile` is done while the first of them thinks. For `again`
    see `Place.run`. A list that shows no explanations need not look for any.
    """
    found: dict[RunRecord, RunStatus] = {}
    for cluster in dict.fromkeys(record.cluster for record in records):
        wanted = [record for record in records if record.cluster == cluster]
        there = connect_for(wanted[0], home)
        answer = _ask(there, wanted, home, meanwhile, again)
        meanwhile, again = None, ""
        learned = _learn_jobs(wanted, answer, there, home)
        if learned and there.scheduler.capabilities.asked_by_id:
            answer = _ask(there, [learned.get(each, each) for each in wanted], home)
        found.update(_standing(wanted, answer, there, explained=explained))
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
    there: ConnectedCluster,
    records: Sequence[RunRecord],
    home: Home,
    meanwhile: Callable[[], object] | None = None,
    again: str = "",
) -> "SchedulerAnswer":
    known = _usable(cached_reports(home.reports, there.cluster.name), records)
    script = there.quickly("status", json.dumps(_about_queue(there.scheduler)))
    question = "".join(_about_run(record, known) for record in records).encode()
    with _at_once(meanwhile):
        outcome = surely(lambda: there.run(script, feed=question, again=again))
    try:
        *lines, last = untrusted.read_lines(outcome.output, {}) or [{}]
        if "queue" not in last:
            raise Unreachable(
                f"{there.cluster.name} did not tell how its runs stand", why=outcome.complaint
            )
        untrusted.checked(last, LAST)
        reports = _reports(untrusted.checked(lines, [LINE]), known, records)
    except untrusted.Unexpected as problem:
        raise untrusted.unusable(there.cluster.name, problem) from problem
    if any("run" in line and line.get("mark") for line in lines):
        before = cached_reports(home.reports, there.cluster.name)
        cache_reports(home.reports, there.cluster.name, {**before, **reports})
    queue, complaint = _queue(last, there)
    from rabaska.steps.read_status import SchedulerAnswer

    return SchedulerAnswer(reports, queue, complaint, last["now"])


def _about_queue(scheduler: Scheduler) -> dict[str, Any]:
    able = scheduler.capabilities
    return {
        "tail": _TAIL_LINES,
        "queue": scheduler.status_command([JobId("{jobs}")] if able.asked_by_id else []),
        "answers": [0, *able.partial_answers],
        "history": scheduler.history_command([JobId("{jobs}")]),
    }


def _about_run(record: RunRecord, known: Mapping[str, Report]) -> str:
    mark = known.get(record.path, {}).get("mark")
    return json.dumps({"path": record.path, "ids": record.job_id, "mark": mark}) + "\n"


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


def _queue(told: Mapping[str, Any], there: ConnectedCluster) -> tuple[Queue | None, str]:
    """History first, the queue over it: what is still in the queue is newer.

    A queue that complained, or said nothing at all, is not an empty one.
    """
    queue, history = told["queue"], told["history"]
    able = there.scheduler.capabilities
    answers = (0, *able.partial_answers)
    if queue["exit_code"] not in answers or not able.is_answer(queue["said"]):
        return None, queue["complained"].strip() or queue["said"].strip()
    found: dict[str, JobStatus] = {}
    if history and history["exit_code"] in answers:
        found.update(there.scheduler.read_history(history["said"]))
    found.update(there.scheduler.read_status(queue["said"]))
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
    records: Sequence[RunRecord], answer: "SchedulerAnswer", there: ConnectedCluster, home: Home
) -> dict[RunRecord, RunRecord]:
    """Remember the jobs of runs whose submission was answered when we were gone."""
    from rabaska.steps.read_status import newest_job

    learned: dict[RunRecord, RunRecord] = {}
    for record in records:
        report = answer.reports.get(record.path, {})
        if record.job_id and report.get("done"):
            continue  # whatever job it was, nobody will ask for it again
        job = newest_job(report, there)
        if job is not None and job.native != record.job_id:
            learned[record] = replace(record, job_id=job.native)
            remember(home.runs, learned[record])
    return learned


def _standing(
    records: Sequence[RunRecord],
    answer: "SchedulerAnswer",
    there: ConnectedCluster,
    *,
    explained: bool,
) -> "dict[RunRecord, RunStatus]":
    from rabaska.steps.read_status import state_of

    return {each: state_of(each, answer, there, explained=explained) for each in records}
