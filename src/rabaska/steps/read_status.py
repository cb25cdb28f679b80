"""What the report of a run and its jobs in the queue come to: how the run stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from rabaska.domain.jobs import JobId, JobState, JobStatus, together
from rabaska.domain.run_state import (
    Facts,
    JudgedState,
    Submission,
    judged_state,
    ran_out_of_memory,
)
from rabaska.domain.runs import (
    Checkpoint,
    Extension,
    Job,
    MainCurve,
    RunForecast,
    RunState,
    RunStatus,
    Speed,
    Staged,
)
from rabaska.records.caches import Report
from rabaska.records.run_index import RunRecord
from rabaska.schedulers.protocol import COMMENT
from rabaska.schedulers.spelling import job_name
from rabaska.steps import read_phases
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.run_identity import IS_ANOTHERS, after_deletion

Queue = Mapping[str, JobStatus]

_SIGN_OF_LIFE = 60.0  # seconds; a job renews its lease six times in that
_JUST_NOW = 10.0  # seconds in which the records of a job that ended are still to come


@dataclass(frozen=True)
class SchedulerAnswer:
    """What a cluster told of its runs."""

    reports: Mapping[str, Report]  # by run folder
    queue: Queue | None  # None: the scheduler did not answer
    complaint: str  # the scheduler's own words when it did not
    now: float  # by the cluster's clock
    offset: int = 0  # seconds that its local time is ahead of UTC


def newest_job(report: Report, cluster: ConnectedCluster) -> JobId | None:
    """The id the scheduler gave to the newest submission it answered, or to each of its jobs."""
    ids: list[JobId] = []
    for submission in reversed(report.get("submissions", [])):
        if submission.get("exit_code") == 0:
            job = cluster.scheduler.read_job_id(submission.get("said", ""))
            ids += [job] if job else []
            if not submission.get("after"):
                break
    # On this computer, a job that was added has the id of those before it.
    return together(list(dict.fromkeys(reversed(ids)))) if ids else None


def state_of(
    record: RunRecord, answer: SchedulerAnswer, cluster: ConnectedCluster, *, explained: bool
) -> RunStatus:
    report = answer.reports[record.path]
    if not report["about"] and report["problems"] == ["there is no such folder"]:
        return _missing(record, answer.now, f"its folder {record.path} is not there")
    # What cannot be read tells no id; its problems are shown.
    if report.get("id", "") not in (record.id, None):
        return _missing(record, answer.now, f"{record.path} {IS_ANOTHERS}")
    job = newest_job(report, cluster)
    # What is finished has nothing in the queue, which may hold thousands of others.
    held = {} if report.get("done") else _jobs_of(job, answer.queue)
    marks = [str(each.get("submission", "")) for each in report.get("submissions", [])]
    mine, strangers = _parted(held, carried(record.name, marks, report.get("about") or {}))
    found = _read_run(record, report, mine, answer.now, job_id=str(job or ""), explained=explained)
    found = replace(
        found,
        waiting=read_phases.waiting(report, mine, answer.offset),
        starting=read_phases.starting(report, mine, answer.offset),
        problems=(*found.problems, *dict.fromkeys(strangers)),
    )
    if mine is None and answer.complaint and found.state is RunState.UNKNOWN:
        found = replace(found, problems=(*found.problems, f"it said: {answer.complaint}"))
    return found


def _jobs_of(job: JobId | None, queue: Queue | None) -> Queue | None:
    """The part of the queue that is this run's newest submission."""
    if queue is None:
        return None
    if job is None:
        return {}
    return {key: each for key, each in queue.items() if job.holds(key)}


def carried(run: str, marks: Sequence[str], about: Mapping[str, Any]) -> list[str]:
    """What a job of the run may carry: its name, as schedulers spell it, or a mark."""
    # Runs of older versions may have a name of their user's: `-N training`, `--job-name=training`.
    given = " ".join(about.get("native") or ()).replace("=", " ").split()
    comments = [f"{COMMENT}{mark}" for mark in marks if mark]
    return [*dict.fromkeys([run, job_name(run), *comments, *given])]


def another(job_id: str, name: str) -> str:
    return f"id {job_id} belongs to another job now: `{name}`"


def _parted(held: Queue | None, ours: Sequence[str]) -> tuple[Queue | None, list[str]]:
    """Those of the jobs that are the run's, and a sentence for each that only has its id."""
    if held is None:
        return None, []
    others = {key: job for key, job in held.items() if job.is_anothers(ours)}
    mine = {key: job for key, job in held.items() if key not in others}
    return mine, [another(key.partition("_")[0], job.carries[0]) for key, job in others.items()]


def _missing(record: RunRecord, now: float, gone: str) -> RunStatus:
    return RunStatus(
        name=record.name,
        cluster=record.cluster,
        state=RunState.GONE if record.job_id else RunState.INTERRUPTED,
        reason=gone if record.job_id else "it was never submitted",
        hint=after_deletion(record),
        path=record.path,
        job_id=record.job_id,
        now=now,
    )


def _read_run(
    record: RunRecord,
    report: Report,
    queue: Queue | None,
    now: float,
    *,
    job_id: str,
    explained: bool,
) -> RunStatus:
    stands = judged_state(_facts(report, queue, now))
    tail = report.get("tail", "")
    found = report.get("checkpoint")
    told = RunStatus(
        name=record.name,
        cluster=record.cluster,
        state=stands.state,
        reason=stands.reason,
        hint=stands.hint,
        jobs_requested=report.get("jobs_requested") or 0,
        walltime=timedelta(seconds=report.get("walltime") or 0),
        jobs=tuple(_job(each, queue, now, stands.state) for each in report.get("jobs", [])),
        data=tuple(
            one for each in report.get("data", ()) if (one := read_phases.noun(Staged, each))
        ),
        restarts=read_phases.restarts(report, queue),
        checkpoint=Checkpoint(**found) if found else None,
        metrics=report.get("metrics", {}),
        curve=read_phases.noun(MainCurve, report.get("curve")),
        speed=read_phases.noun(Speed, report.get("speed")),
        vitals=read_phases.vitals(report),
        ranks=read_phases.ranks(report),
        not_watched=report.get("not_watched", ""),
        begins_again=report.get("begins_again", ""),
        moved=report.get("moved", ""),
        command=tuple(report.get("command", ())),
        left_running=report.get("left_running", 0),
        not_kept=tuple(report.get("not_kept", ())),
        forecast=read_phases.noun(RunForecast, report.get("forecast")),
        extended=read_phases.noun(Extension, report.get("extended")),
        tail=tail,
        about=report.get("about") or {},
        path=record.path,
        problems=tuple(report.get("problems", ())),
        job_id=job_id,
        submission=_newest_submission(report.get("submissions", [])),
        now=now,
    )
    return _with_meaning(told, stands, tail, explained=explained)


def _with_meaning(told: RunStatus, stands: JudgedState, tail: str, *, explained: bool) -> RunStatus:
    # A cause that was recognised is told as the reason, with its remedy: `explain` says the same.
    if told.is_recognised:
        return told
    if explained and stands.state in (RunState.FAILED, RunState.INTERRUPTED):
        from rabaska.steps.explain_failure import explanations

        return replace(told, explanations=explanations(told, f"{tail}\n{stands.reason}"))
    if stands.state is RunState.QUEUED and stands.reason:
        from rabaska.knowledge.queue_reasons import reason_for

        waits = reason_for(stands.reason)
        if waits and not waits.ordinary:
            reason = f"it will never start ({stands.reason})" if waits.never else stands.reason
            return replace(told, reason=reason, explanations=((waits.meaning, waits.fix),))
    return told


def _facts(report: Report, queue: Queue | None, now: float) -> Facts:
    submissions = report.get("submissions", [])
    last = report["jobs"][-1] if report.get("jobs") else {}
    verdict = report.get("verdict") or {}
    is_open = bool(last) and not last.get("ended")
    return Facts(
        done=bool(report.get("done")),
        stop=bool(report.get("stop")),
        decision=verdict.get("decision", "not begun"),
        reason=verdict.get("reason", ""),
        holder_alive=last.get("holder_alive") if is_open else False,
        submitted=any(each.get("exit_code") == 0 for each in submissions),
        submitted_ago=now - max((each.get("time", 0) for each in submissions), default=0),
        queue=queue,
        refused=_refusal(submissions),
        last_id=last.get("id") or "",
        last_is_open=is_open,
        hint=verdict.get("hint", ""),
        submission=_unanswered(report.get("submitting"), now),
        run=str(report.get("run") or ""),
        incomplete=bool(report.get("incomplete")),
        memory=read_phases.memory_asked(report),
        heard=is_open and now - (last.get("heartbeat") or 0) < _SIGN_OF_LIFE,
        silent=now - last["heartbeat"] if is_open and last.get("heartbeat") else 0.0,
    )


def _newest_submission(lines: Sequence[Report]) -> str:
    """Its mark; the answer of an older one may have come after it was begun."""
    marks = list(dict.fromkeys(str(each.get("submission", "")) for each in lines))
    return marks[-1] if marks else ""


def _unanswered(told: Report | None, now: float) -> Submission | None:
    if not told or told["state"] == "found":
        return None
    ago = max(0.0, now - (told.get("time") or now))
    words = {name: told.get(name) or "" for name in ("state", "command", "host", "said")}
    return Submission(ago=ago, findable=told.get("findable", True), **words)


def _refusal(submissions: Sequence[Report]) -> str:
    answered = [each for each in submissions if each.get("exit_code") is not None]
    if not answered or answered[-1]["exit_code"] == 0:
        return ""
    return " ".join((answered[-1].get("complained") or answered[-1].get("said") or "").split())


def _job(told: Report, queue: Queue | None, now: float, state: RunState) -> Job:
    return Job(
        number=told["job"],
        id=told.get("id") or "",
        host=told.get("host") or "",
        pid=told.get("pid"),
        submitted=told.get("submitted"),
        began=told.get("begun"),
        ended=told.get("ended"),
        how=_how(told, queue, now, state),
        reason=told.get("reason") or "",
        exit_code=told.get("exit_code"),
        signal=told.get("signal"),
        first_step=told.get("first_step"),
        last_step=told.get("last_step"),
        steps_redone=told.get("steps_redone"),
        epoch=told.get("epoch"),
        resumed_from=told.get("resumed_from") or "",
        checkpoint_found=told.get("checkpoint_found") or "",
        started_over=told.get("started_over") or "",
        beginning_not_known=told.get("beginning_not_known") or "",
        phase=read_phases.phase(told.get("phase")),
        used=read_phases.used(told, queue),
    )


def _how(told: Report, queue: Queue | None, now: float, state: RunState) -> str:
    """How a job ended, by its own record first; its scheduler is asked where it left none.

    The queue may have answered after the records were read: what was alive a moment ago is not
    lost, for it may have ended in between, and the next question finds its record.
    """
    if told.get("how") not in ("running", "lost", None):
        return str(told["how"])
    job = (queue or {}).get(told.get("id") or "")
    if job and ran_out_of_memory(job):
        return "out of memory"
    if job and job.state.over and job.state not in (JobState.DONE, JobState.FAILED):
        return str(job.state.value)
    alive = told.get("how") == "running" and now - (told.get("heartbeat") or 0) < _JUST_NOW
    if alive and state is RunState.FINISHED:
        return "finished"
    if alive and not state.over:
        return ""
    gone = queue is not None and job is None and told.get("holder_alive") is None
    lost = told.get("how") == "lost" or gone or (job is not None and job.state.over)
    return "lost" if lost else ""
