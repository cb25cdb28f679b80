"""A search on its cluster: its folder made, its workers submitted, its status asked for."""

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from rabaska.domain import untrusted
from rabaska.domain.jobs import JobId, JobSpec, JobState
from rabaska.domain.search import SearchState, SearchStatus, Trial
from rabaska.errors import (
    CommandFailed,
    NoSuchRun,
    RabaskaError,
    SubmissionRefused,
    Unreachable,
)
from rabaska.node.login.create_run import TAKEN
from rabaska.node.login.submit_job import REFUSED
from rabaska.node.record.submissions import NO_ANSWER
from rabaska.node.search.study import run_name
from rabaska.records.home import Home
from rabaska.records.search_index import SearchRecord
from rabaska.remote.place import Outcome, quoted, surely
from rabaska.remote.ssh_errors import refuse_full_disk
from rabaska.steps.connect import ConnectedCluster, cluster_named, connect_for
from rabaska.steps.plan_search import SCRIPT, PlannedSearch, study_tar, workers_of
from rabaska.steps.query_status import Queue, queue_question, read_queue
from rabaska.steps.read_plan import PLAN
from rabaska.steps.submit import NameTaken

_AT_WORK = (JobState.RUNNING, JobState.STOPPING, JobState.SUSPENDED)
_SILENT = {"exit_code": None, "said": "", "complained": ""}
_TRIAL = {field.name for field in fields(Trial)}
_VALUE = (float, str, bool, None)
# A number becomes a folder on this computer.
_TRIAL_SHAPE = {
    "number": untrusted.SIZE,
    "run": str,
    "values": {str: _VALUE},
    "state": str,
    "value": (float, None),
    "why": str,
    "begun": untrusted.TIME,
    "ended": (untrusted.TIME, None),
    "seconds": (float, None),
    "jobs": (int, None),
    "reports": int,
    "tries": int,
    "names": [str],
    "told": {str: (float, None)},
    "curve?": [[float]],
}
_REPORT = {
    "total": int,
    "stopped": bool,
    "halted": str,
    "over": bool,
    "jobs": [str],
    "now": untrusted.TIME,
    "queue?": {"exit_code": (int, None), "said": str, "complained": str, "asked?": [str]},
    "trials": [_TRIAL_SHAPE],
    "settings": {
        "metric": str,
        "goal": re.compile("max|min"),
        "method": str,
        "stopping": str,
        "at_once": int,
        "given": {str: (_VALUE, [_VALUE], {str: (_VALUE, [_VALUE], {str: (_VALUE, [_VALUE])})})},
        "spelled": {str: [str]},
        "plan": {name: shape for name, shape in PLAN.items() if name != "run"},
        "workers": {"spec": {str: lambda _: True}, "submissions": int},
    },
}


def create(planned: PlannedSearch, cluster: ConnectedCluster, path: str) -> None:
    """Make the folder; NameTaken when another search has that name."""
    script, content = quoted([*cluster.node, "search", "create", path]), study_tar(planned)
    outcome = surely(lambda: cluster.run(script, feed=content))
    if outcome.exit_code == TAKEN:
        raise NameTaken(path)
    if outcome.exit_code != 0:
        refuse_full_disk(outcome.complaint)
        raise CommandFailed(
            f"the folder of the search could not be made on {cluster.name}", why=outcome.complaint
        )


def submit_workers(
    spec: JobSpec, count: int, cluster: ConnectedCluster, path: str
) -> Iterator[JobId]:
    """Submit the jobs of workers `count` times; each submission has a folder of its own.

    Where there are no arrays, the jobs of one place among `at_once` follow one another.
    """
    able, taken = cluster.scheduler.capabilities, 0
    in_array = spec.jobs == 1 or able.array or able.array_at_once
    chained = spec.jobs if able.dependency and not in_array else 1
    for _ in range(count):
        before: JobId | None = None
        for _ in range(chained):
            try:
                before = _submit_worker(spec, cluster, path, before)
            except SubmissionRefused as refusal:
                if before is None or not able.is_dependency_over(refusal.why):
                    raise _with_taken(refusal, taken) from None
                # The worker before it has ended already: there is nothing to wait for.
                before = _submit_worker(spec, cluster, path, None)
            taken += 1
            yield before


def _submit_worker(
    spec: JobSpec, cluster: ConnectedCluster, path: str, after: JobId | None
) -> JobId:
    mark = uuid.uuid4().hex
    folder = f"{path}/submitted/{mark[:12]}"
    command = cluster.scheduler.submit_command(f"{path}/{SCRIPT}", spec, after=after)
    find = cluster.find_command(spec.name)
    asking = ["--find", quoted(find)] if find else []
    words = [*cluster.node, "submit", folder, "--mark", mark, "--jobs", str(spec.jobs)]
    script = quoted([*words, *asking, "--", *command])
    make = quoted(["mkdir", "-p", folder])
    outcome = surely(lambda: cluster.run(f"{make} && {script}"))
    job = cluster.scheduler.read_job_id(outcome.output) if outcome.exit_code == 0 else None
    if job is None:
        raise _refused(spec.name, cluster, outcome, command[0])
    return job


def _with_taken(refusal: SubmissionRefused, taken: int) -> SubmissionRefused:
    few = f"; {taken} of its workers were submitted before" if taken else ""
    return SubmissionRefused(f"{refusal.what}{few}", why=refusal.why, hint=refusal.hint)


def _refused(name: str, cluster: ConnectedCluster, outcome: Outcome, command: str) -> RabaskaError:
    said = f"{command} said: {outcome.complaint}"
    if outcome.exit_code not in (0, REFUSED):
        return Unreachable(
            f"{cluster.name} did not answer whether it took a worker of search {name}",
            why=outcome.complaint,
            hint=f"`rabaska search status {name}` shows whether it works",
        )
    hint = "a smaller `at_once` under [search] needs fewer jobs"
    if NO_ANSWER.search(said):
        hint = "its scheduler does not answer; try again later"
    elif "array" in said.lower():
        hint = (
            f"{cluster.name} takes smaller arrays only: try a smaller `at_once` or `[chain] jobs`"
        )
    return SubmissionRefused(
        f"{cluster.name} refused the workers of search {name}", why=said, hint=hint
    )


def connected(record: SearchRecord, home: Home) -> ConnectedCluster:
    """The cluster of a search; its store is where the search is."""
    cluster_named(record.cluster, home)
    return connect_for(record, home)  # type: ignore[arg-type]


def ask(record: SearchRecord, home: Home, *words: str, curves: bool = False) -> SearchStatus:
    """Its status, after what `words` tell it: `stop`, `more --trials 20`."""
    cluster = connected(record, home)
    what, *rest = words or ("report",)
    extra = ["--curves"] if curves else []
    queue = ["--queue", json.dumps(queue_question(cluster.scheduler))]
    script = quoted([*cluster.node, "search", what, record.path, *rest, *extra, *queue])
    outcome = surely(lambda: cluster.run(script))
    if not outcome.output.strip():
        raise _no_answer(record, outcome.complaint)
    report = _checked(record, outcome.output)
    queued = report.get("queue", _SILENT)
    return _status(record, report, *read_queue(queued, None, cluster.scheduler))


def read_report(record: SearchRecord, text: str, queue: Queue) -> SearchStatus:
    return _status(record, _checked(record, text), queue, "")


def _checked(record: SearchRecord, text: str) -> Any:
    """What its cluster answered, checked before anything is made of it."""
    try:
        report = untrusted.read(text, _REPORT)
        for one in report["trials"]:
            if one["run"] != run_name(record.name, one["number"]):
                raise untrusted.Unexpected(f"trial {one['number']} is no run of {record.name}")
            if any(len(point) != 2 for point in one.get("curve", ())):
                raise untrusted.Unexpected(f"the curve of trial {one['number']} has no values")
        workers_of(report["settings"]["workers"])
    except (ValueError, TypeError, KeyError, OverflowError) as problem:
        raise untrusted.unusable(record.cluster, problem) from problem
    return report


def _no_answer(record: SearchRecord, why: str) -> Exception:
    if "there is no search" in why:
        return NoSuchRun(
            f"search {record.name} is not on {record.cluster} any more",
            why=f"somebody deleted {record.path}",
            hint="`rabaska search run` starts another one",
        )
    return Unreachable(f"{record.cluster} did not report the status of {record.name}", why=why)


def _status(
    record: SearchRecord, report: Mapping[str, Any], queue: Queue | None, complaint: str
) -> SearchStatus:
    ids = [JobId(text) for text in report["jobs"]]
    told = (queue or {}).items()
    own = [one for key, one in told if any(job.holds(key) for job in ids)]
    running = sum(one.state in _AT_WORK for one in own)
    waiting = sum(one.state in (JobState.QUEUED, JobState.HELD) for one in own)
    silent = "" if queue is not None else f"the queue did not answer: {complaint}"
    # One that nobody tells of may be at work, or not.
    unsure = silent or next((one.reason for one in own if one.state is JobState.UNKNOWN), "")
    state = _state(report, running, waiting, unsure=bool(unsure))
    settings = report["settings"]
    return SearchStatus(
        name=record.name,
        cluster=record.cluster,
        path=record.path,
        state=state,
        metric=settings["metric"],
        goal=settings["goal"],
        method=settings["method"],
        stopping=settings["stopping"],
        total=report["total"],
        at_once=settings["at_once"],
        trials=_trials(report["trials"], list(settings["given"]), working=bool(running or unsure)),
        workers_running=running,
        workers_waiting=waiting,
        halted=report["halted"],
        reason=unsure if state is SearchState.UNKNOWN else "",
        now=report["now"],
        space=settings["given"],
        workers=settings["workers"],
        plan=settings["plan"],
        spelled=settings["spelled"],
    )


def _state(report: Mapping[str, Any], running: int, waiting: int, *, unsure: bool) -> SearchState:
    if report["halted"]:
        return SearchState.FAILED
    if report["over"]:
        return SearchState.FINISHED
    if report["stopped"]:
        return SearchState.STOPPING if running or unsure else SearchState.STOPPED
    if running:
        return SearchState.RUNNING
    if unsure:
        return SearchState.UNKNOWN
    return SearchState.QUEUED if waiting else SearchState.INTERRUPTED


def _trials(
    found: Sequence[Mapping[str, Any]], order: Sequence[str], *, working: bool
) -> tuple[Trial, ...]:
    trials = []
    for one in found:
        known = {name: one[name] for name in _TRIAL & one.keys()}
        values = known["values"]
        known["values"] = {name: values[name] for name in (*order, *values) if name in values}
        known["names"] = tuple(known.get("names", ()))
        known["curve"] = tuple((int(at), float(value)) for at, value in known.get("curve", ()))
        if known["state"] == "running" and not working:
            known["state"] = "interrupted"
        trials.append(Trial(**known))
    return tuple(trials)
