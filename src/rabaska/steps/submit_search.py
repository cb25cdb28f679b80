"""A search on its cluster: its folder made, its workers submitted, its status asked for."""

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from rabaska.domain import untrusted
from rabaska.domain.jobs import JobId, JobSpec, JobState, JobStatus
from rabaska.domain.search import SearchState, SearchStatus, Trial
from rabaska.errors import CommandFailed, NoSuchRun, SubmissionRefused, Unreachable
from rabaska.node.login.create_run import TAKEN
from rabaska.node.login.submit_job import REFUSED
from rabaska.node.search.study import run_name
from rabaska.records.home import Home
from rabaska.records.search_index import SearchRecord
from rabaska.remote.place import Outcome, quoted, surely
from rabaska.remote.ssh_errors import refuse_full_disk
from rabaska.steps.connect import ConnectedCluster, cluster_named, connect_for
from rabaska.steps.plan_search import SCRIPT, PlannedSearch, study_tar, workers_of
from rabaska.steps.read_plan import PLAN
from rabaska.steps.submit import NameTaken

_QUEUE = "--- rabaska: the queue ---"
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
    able = cluster.scheduler.capabilities
    chained = 1 if able.array else spec.jobs
    taken = 0
    for _ in range(count):
        before: JobId | None = None
        for _ in range(chained):
            before = _submit_one(spec, cluster, path, after=before, taken=taken)
            taken += 1
            yield before
            if not able.dependency:
                break


def _submit_one(
    spec: JobSpec, cluster: ConnectedCluster, path: str, *, after: JobId | None, taken: int
) -> JobId:
    mark, scheduler = uuid.uuid4().hex, cluster.scheduler
    folder = f"{path}/submitted/{mark[:12]}"
    find = cluster.find_command(spec.name)
    asking = ["--find", quoted(find)] if find else []
    in_one = str(spec.jobs) if scheduler.capabilities.array else "1"
    words = [*cluster.node, "submit", folder, "--mark", mark, "--jobs", in_one, *asking, "--"]
    make = quoted(["mkdir", "-p", folder])

    def submitted(command: Sequence[str]) -> Outcome:
        return surely(lambda: cluster.run(f"{make} && {quoted([*words, *command])}"))

    command = scheduler.submit_command(f"{path}/{SCRIPT}", spec, after=after)
    outcome = submitted(command)
    over = after is not None and scheduler.capabilities.is_dependency_over(outcome.complaint)
    if outcome.exit_code == REFUSED and over:
        # The worker before it has ended already: there is nothing to wait for.
        outcome = submitted(scheduler.submit_command(f"{path}/{SCRIPT}", spec))
    job = scheduler.read_job_id(outcome.output) if outcome.exit_code == 0 else None
    if job is None:
        raise _refused(spec.name, cluster, outcome, command[0], taken=taken)
    return job


def _refused(
    name: str, cluster: ConnectedCluster, outcome: Any, command: str, *, taken: int
) -> Any:
    said = f"{command} said: {outcome.complaint}"
    if outcome.exit_code not in (0, REFUSED):
        return Unreachable(
            f"{cluster.name} did not answer whether it took a worker of search {name}",
            why=outcome.complaint,
            hint=f"`rabaska search status {name}` shows whether it works",
        )
    few = f"; {taken} of its workers were submitted before" if taken else ""
    hint = "a smaller `at_once` under [search] needs fewer jobs"
    if "array" in said.lower():
        hint = (
            f"{cluster.name} takes smaller arrays only: try a smaller `at_once` or `[chain] jobs`"
        )
    return SubmissionRefused(
        f"{cluster.name} refused the workers of search {name}{few}", why=said, hint=hint
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
    script = quoted([*cluster.node, "search", what, record.path, *rest, *extra])
    by_id = cluster.scheduler.capabilities.asked_by_id
    queue = "true" if by_id else quoted(cluster.scheduler.status_command([])) + " || true"
    outcome = surely(lambda: cluster.run(f"{script} || exit\necho {quoted([_QUEUE])}\n{queue}"))
    report, _, queued = outcome.output.partition(_QUEUE)
    if not report.strip():
        raise _no_answer(record, outcome.complaint)
    checked = _checked(record, report)
    if by_id and checked["jobs"]:
        # Its queue lists everybody's jobs, so it is asked about ours alone.
        ids = [JobId(text) for text in checked["jobs"]]
        command = quoted(cluster.scheduler.status_command(ids))
        queued = surely(lambda: cluster.run(f"{command} || true")).output
    return _status(record, checked, cluster.scheduler.read_status(queued))


def read_report(record: SearchRecord, text: str, queue: Mapping[str, JobStatus]) -> SearchStatus:
    return _status(record, _checked(record, text), queue)


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
    record: SearchRecord, report: Mapping[str, Any], queue: Mapping[str, JobStatus]
) -> SearchStatus:
    ids = [JobId(text) for text in report["jobs"]]
    own = [state for key, state in queue.items() if any(job.holds(key) for job in ids)]
    running = sum(one.state in (JobState.RUNNING, JobState.STOPPING) for one in own)
    waiting = sum(one.state in (JobState.QUEUED, JobState.HELD) for one in own)
    settings = report["settings"]
    return SearchStatus(
        name=record.name,
        cluster=record.cluster,
        path=record.path,
        state=_state(report, running, waiting),
        metric=settings["metric"],
        goal=settings["goal"],
        method=settings["method"],
        stopping=settings["stopping"],
        total=report["total"],
        at_once=settings["at_once"],
        trials=_trials(report["trials"], list(settings["given"]), working=bool(running)),
        workers_running=running,
        workers_waiting=waiting,
        halted=report["halted"],
        now=report["now"],
        space=settings["given"],
        workers=settings["workers"],
        plan=settings["plan"],
        spelled=settings["spelled"],
    )


def _state(report: Mapping[str, Any], running: int, waiting: int) -> SearchState:
    if report["halted"]:
        return SearchState.FAILED
    if report["over"]:
        return SearchState.FINISHED
    if report["stopped"]:
        return SearchState.STOPPING if running else SearchState.STOPPED
    if running:
        return SearchState.RUNNING
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
