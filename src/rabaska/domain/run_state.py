"""The state of a run, decided from its own records first and the queue last."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from rabaska.domain.amounts import say_duration, say_size
from rabaska.domain.jobs import JobState, JobStatus, UsedResources
from rabaska.domain.runs import RunState
from rabaska.node.record.out_of_memory import remedy

_LONG_SILENCE = 300.0  # seconds; clocks of nodes and login nodes differ by less
_JUST_SUBMITTED = 120.0  # seconds a scheduler may take to mention a new job


@dataclass(frozen=True)
class Submission:
    """A submission that has no answer yet."""

    state: str  # under way, lost, not taken
    ago: float  # seconds
    command: str = ""  # the scheduler's
    host: str = ""  # where it was given
    said: str = ""  # what the scheduler said instead of an answer
    findable: bool = True  # the queue can be asked for its job

    @property
    def may_come(self) -> bool:
        """Whether it may still become a job."""
        return self.state != "not taken"


@dataclass(frozen=True)
class Facts:
    """What is known of a run, each from its own source."""

    done: bool  # DONE is there
    stop: bool  # STOP is there
    decision: str  # the chain rule's: finished, go on, give up, not begun
    reason: str  # the chain rule's
    holder_alive: bool | None  # None: it is on another computer
    submitted: bool  # the scheduler answered a submission with an id
    submitted_ago: float  # seconds
    queue: Mapping[str, JobStatus] | None  # the run's jobs, by id; None: the queue did not answer
    last_id: str = ""  # of the last job, as its scheduler calls it
    last_is_open: bool = False  # the last job left no record of its end
    refused: str = ""  # what the scheduler said when it refused the newest submission
    heard: bool = False  # the last job gave a sign of life a moment ago
    silent: float = 0.0  # seconds since the last job did, where it left no record of its end
    hint: str = ""  # the chain rule's, what to do about its reason, or how to get further
    submission: Submission | None = None  # the last one, while it has no answer
    run: str = ""  # its name
    incomplete: bool = False  # the results that it starts from are not all there
    memory: int = 0  # bytes that each job asks for; 0: left to the cluster


@dataclass(frozen=True)
class JudgedState:
    """What the facts come to, and what to do about it."""

    state: RunState
    reason: str = ""
    hint: str = ""


_OF_A_RUN = re.compile(r"`rabaska (resume|wait|cancel|logs|fetch|explain|rerun)(?=`| --)")


def with_names(advice: str, run: str, cluster: str) -> str:
    """The same for one run: without a name, its commands would mean the newest one."""
    named = re.sub(r"\bRUN\b", run, re.sub(r"\bCLUSTER\b", cluster, advice))
    return _OF_A_RUN.sub(rf"`rabaska \1 {run}", named)


def judged_state(facts: Facts) -> JudgedState:
    if facts.done:
        return JudgedState(RunState.FINISHED)
    busy = _busy(facts)
    if facts.stop and facts.submission and facts.submission.may_come:
        return JudgedState(RunState.STOPPING, f"you cancelled it; {_awaited(facts.submission)}")
    if facts.stop and facts.queue is None and facts.submitted:
        return JudgedState(RunState.STOPPING, "you cancelled it, and the queue did not answer")
    if facts.stop:
        return JudgedState(RunState.STOPPING if busy else RunState.CANCELLED, "you cancelled it")
    if facts.decision == "give up" and not facts.holder_alive:
        return JudgedState(RunState.FAILED, facts.reason, facts.hint)
    if busy:
        return busy
    return _submitting(facts.submission) or _idle(facts)


def _submitting(submission: Submission | None) -> JudgedState | None:
    """What is said of a submission without an answer; None when there is none."""
    if submission is None:
        return None
    if submission.state == "not taken":
        return JudgedState(
            RunState.INTERRUPTED,
            "its submission got no answer, and the queue has no job of it",
            "`rabaska resume` submits it",
        )
    hint = "`rabaska wait` waits for it; nothing is submitted twice"
    if submission.state == "lost" and not submission.findable:
        hint += (
            "; if the cluster's own commands show no such job, run `rabaska cancel`, and "
            "`rabaska resume` a minute later, to submit it again"
        )
    return JudgedState(RunState.SUBMITTING, _awaited(submission), hint)


def _awaited(submission: Submission) -> str:
    command = submission.command.rpartition("/")[2] or "the scheduler"
    if submission.state == "under way" and not submission.command:
        return f"it was made {submission.ago:.0f} s ago, and is not submitted yet"
    if submission.state == "under way":
        where = f" on {submission.host}" if submission.host else ""
        return f"{command} has not answered for {submission.ago:.0f} s{where}"
    why = f": {' '.join(submission.said.split())}" if submission.said.strip() else ""
    if not submission.findable:
        return f"the answer of {command} was lost; its job will be known once it starts{why}"
    return f"the answer of {command} was lost; searching the queue for its job{why}"


def _busy(facts: Facts) -> JudgedState | None:
    """Running or waiting, if the holder or the queue says so."""
    states = _states(facts)
    if facts.holder_alive or JobState.RUNNING in states or JobState.STOPPING in states:
        return _running(facts)
    if JobState.SUSPENDED in states:
        return JudgedState(RunState.SUSPENDED, _reason_of(facts.queue or {}, JobState.SUSPENDED))
    if JobState.QUEUED in states or JobState.HELD in states:
        return JudgedState(RunState.QUEUED, _waiting_for(facts.queue or {}))
    if facts.queue is None and facts.heard:
        return JudgedState(RunState.RUNNING, "the queue did not answer, but its job is running")
    return None


def _running(facts: Facts) -> JudgedState:
    """A job whose node is gone may stay in the queue as running: on Torque, until it is purged."""
    if facts.holder_alive is not None or facts.silent < _LONG_SILENCE:
        return JudgedState(RunState.RUNNING)
    return JudgedState(
        RunState.RUNNING,
        f"no sign of life from its job for {say_duration(timedelta(seconds=facts.silent))}",
        "its node may be lost: once the scheduler or the site has ended its job, the next one "
        "resumes; `rabaska cancel` removes the run from the queue",
    )


def _idle(facts: Facts) -> JudgedState:
    """Nothing runs and nothing waits, as far as anybody knows."""
    if facts.incomplete:
        return JudgedState(
            RunState.INTERRUPTED,
            "the results of the earlier run were not all copied, and it was never submitted",
            f"if no command is still copying them: `rabaska delete {facts.run}`, and give the "
            "command that made it again",
        )
    if facts.queue is None:
        return JudgedState(RunState.UNKNOWN, "the queue did not answer", "try again in a moment")
    if JobState.UNKNOWN in _states(facts):
        return JudgedState(RunState.UNKNOWN, _why_unknown(facts.queue), "try again in a moment")
    if not facts.submitted and facts.refused:
        return JudgedState(
            RunState.INTERRUPTED,
            f"the cluster refused it: {facts.refused}",
            "`rabaska resume` submits it again unchanged; after a change, use `rabaska run`",
        )
    if not facts.submitted:
        return JudgedState(
            RunState.INTERRUPTED, "it was never submitted", "`rabaska resume` submits it"
        )
    if not facts.queue and facts.submitted_ago < _JUST_SUBMITTED and not facts.last_is_open:
        return JudgedState(RunState.QUEUED, "submitted a moment ago")
    if facts.decision == "not begun" and JobState.TIMEOUT in _states(facts):
        return JudgedState(
            RunState.FAILED,
            "its first job reached the time limit before it could start",
            "give each job more time: `rabaska run --walltime 1h`",
        )
    if out_of_memory := _out_of_memory(facts):
        return out_of_memory
    hint = facts.hint or "`rabaska resume` continues it"
    return JudgedState(RunState.INTERRUPTED, _why_idle(facts), hint)


def _out_of_memory(facts: Facts) -> JudgedState | None:
    """What is said when the scheduler ended the last job, and its own record, for its memory."""
    last = (facts.queue or {}).get(facts.last_id) if facts.last_is_open else None
    if last is None or not ran_out_of_memory(last):
        return None
    used = last.used or UsedResources()
    limit = used.memory_limit or facts.memory
    peak = f"; its processes reached {say_size(used.memory)}" if used.memory else ""
    most = f" of {say_size(limit)}" if limit else ""
    reason = f"the scheduler ended its last job for using too much memory{peak}{most}"
    return JudgedState(RunState.FAILED, reason, remedy(facts.run, max(limit, used.memory or 0)))


def _why_idle(facts: Facts) -> str:
    states = _states(facts)
    last = (facts.queue or {}).get(facts.last_id) if facts.last_is_open else None
    if last and _end_reported_by(last):
        return _end_reported_by(last)
    if JobState.LOST in states:
        return "its process was killed or the computer was restarted"
    for status in reversed(list((facts.queue or {}).values())):
        if status.state in (JobState.NODE_FAILED, JobState.PREEMPTED) or ran_out_of_memory(status):
            return _end_reported_by(status)
    if JobState.CANCELLED in states:
        return "its jobs were cancelled at the scheduler"
    if facts.decision == "not begun":
        return "none of its jobs started"
    if facts.last_is_open:
        return "its last job is gone and left no record of how it ended"
    return "all its jobs have run and the training is not finished"


def _end_reported_by(status: JobStatus) -> str:
    """How a job ended that left no record itself, as its scheduler tells it."""
    if ran_out_of_memory(status):
        return "the scheduler ended its last job for using too much memory"
    return {
        JobState.TIMEOUT: "the time limit ended its last job before it could save",
        JobState.NODE_FAILED: "the node of its last job failed",
        JobState.PREEMPTED: "its last job was preempted by another job",
        JobState.CANCELLED: "its last job was cancelled at the scheduler",
    }.get(status.state, "")


def ran_out_of_memory(status: JobStatus) -> bool:
    # Of PBS it is said in words of our own.
    return status.spelled.startswith("OUT_OF_ME") or "more memory than it asked" in status.reason


def _states(facts: Facts) -> set[JobState]:
    return {status.state for status in (facts.queue or {}).values()}


def _waiting_for(queue: Mapping[str, JobStatus]) -> str:
    """Why the first job that waits does so: those after it wait for it."""
    return _reason_of(queue, JobState.QUEUED, JobState.HELD)


def _reason_of(queue: Mapping[str, JobStatus], *states: JobState) -> str:
    reasons = (status.reason for status in queue.values() if status.state in states)
    return next(filter(None, reasons), "")


def _why_unknown(queue: Mapping[str, JobStatus]) -> str:
    unknown = [status for status in queue.values() if status.state is JobState.UNKNOWN]
    spelled = ", ".join(sorted({status.spelled for status in unknown if status.spelled}))
    return (
        f"the cluster reports its jobs as {spelled}"
        if spelled
        else _reason_of(queue, JobState.UNKNOWN)
    )
