"""The status of runs as text: their state, jobs, speed and forecast."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from rabaska.cli.text import Painted, columns, painted
from rabaska.domain.amounts import say_duration, say_seconds, say_size
from rabaska.domain.runs import Job, RunForecast, RunState, RunStatus, Speed, Staged

_ENDED = (RunState.FINISHED, RunState.FAILED, RunState.CANCELLED)


def outlook(run: RunStatus) -> Iterator[str]:
    if run.speed:
        yield _pace(run.speed)
    if run.not_watched:
        yield f"not watched: {run.not_watched}"
    if run.extended:
        yield f"extended by {_jobs(run.extended.jobs)}, because {run.extended.why}"
    if run.forecast and run.state not in _ENDED:
        yield expected(run.forecast)
        yield from _warnings(run, run.forecast)


def _pace(speed: Speed) -> str:
    waits = f"{speed.waiting:.0%} of it waiting for data"
    rate = f", {speed.samples_per_second:.3g} samples/s" if speed.samples_per_second else ""
    return f"{say_seconds(speed.seconds_per_step)} per step, {waits}{rate}"


def expected(told: RunForecast) -> str:
    """`epoch 3 of 40, 12 min each; 5 jobs; done about Tue 14:00`"""
    parts = [f"{_place(told)}, {say_seconds(told.seconds_each)} each"]
    if told.jobs:
        parts.append(_jobs(told.jobs))
    elif told.per_job:
        parts.append(f"{told.per_job:.3g} {told.unit}s in each job")
    if told.finishes:
        parts.append(f"done about {_moment(told.finishes)}")
    return "; ".join(parts)


def _warnings(run: RunStatus, told: RunForecast) -> Iterator[str]:
    if told.stuck:
        yield f"warning: this chain may never advance: {told.stuck}"
        yield f"  hint: {told.hint}"
    if told.jobs_to_come:
        yield f"note: {told.jobs_there} of them were submitted; the run adds others as it goes"
    if told.jobs_missing:
        there = max(told.jobs_there, told.grows_to)
        yield (
            f"note: it may have only {there} of them; when those are over, "
            f"`rabaska resume {run.name} --jobs {told.jobs_missing}` adds the rest"
        )


def _jobs(count: int) -> str:
    return f"{count} job{'s' if count > 1 else ''}"


def _place(told: RunForecast) -> str:
    of = "" if told.total is None else f" of {told.total:g}"
    if told.unit == "step":
        return f"step {told.done:.0f}{of}"
    under_way = math.floor(told.done) + 1
    return f"epoch {under_way if told.total is None else min(under_way, math.ceil(told.total))}{of}"


def _moment(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds).astimezone()
    soon = moment - datetime.now().astimezone() < timedelta(days=6)
    return moment.strftime("%a %H:%M" if soon else "%a %d %b %H:%M")


_NAMED = 5  # files in one line
_COLOURS = {
    RunState.FINISHED: "green",
    RunState.RUNNING: "cyan",
    RunState.QUEUED: "blue",
    RunState.STOPPING: "yellow",
    RunState.FAILED: "red",
    RunState.CANCELLED: "yellow",
    RunState.INTERRUPTED: "magenta",
    RunState.UNKNOWN: "magenta",
    RunState.SUBMITTING: "blue",
    RunState.GONE: "red",
    RunState.SUSPENDED: "yellow",
}


def one_run(run: RunStatus, *, colours: bool) -> Iterator[str]:
    """A headline, a row per job, and what to know about a failure."""
    yield from _headline(run, colours=colours)
    if run.jobs:
        headings = ("job", "id", "on", "took", "ended", "steps", "redone", "from")
        rows = [_job_row(job, run.now) for job in run.jobs]
        yield from columns(rows, headings, right=("took", "redone"), colours=colours)
    yield from _footnotes(run)
    if run.tail and run.state in (RunState.FAILED, RunState.INTERRUPTED):
        yield painted("\nthe last lines of its log:", "bold", colours=colours)
        yield from (f"  │ {line.rpartition(chr(13))[2]}" for line in run.tail.splitlines())
    for meaning, fix in run.explanations:
        yield f"\n{painted('what it means:', 'bold', colours=colours)} {meaning}"
        yield f"{painted('what to do:', 'bold', colours=colours)} {fix}"


def many_runs(runs: Sequence[RunStatus], *, colours: bool) -> list[str]:
    headings = ("run", "on", "state", "jobs", "last", "why")
    return columns([_run_row(run) for run in runs], headings, colours=colours)


def how_it_ended(job: Job) -> str:
    over = "started over; " if job.started_over else ""
    if not job.how:
        return f"{over}running"
    if job.signal:
        return f"{over}{job.how} (signal {job.signal})"
    return f"{over}{job.how} (exit code {job.exit_code})" if job.exit_code else over + job.how


def steps_of(job: Job) -> str:
    if job.last_step is None:
        return "" if job.epoch is None else f"epoch {job.epoch:g}"
    return f"{job.first_step}-{job.last_step}"


def _headline(run: RunStatus, *, colours: bool) -> Iterator[str]:
    name = painted(run.name, "bold", colours=colours)
    state = painted(run.state.value, _COLOURS[run.state], colours=colours)
    yield f"{name} on {run.cluster}  {state}{': ' if run.reason else ''}{run.reason}"
    if run.hint:
        yield f"  hint: {run.hint}"


def _job_row(job: Job, now: float) -> list[object]:
    return [
        job.number,
        job.id,
        job.host,
        _took(job, now),
        how_it_ended(job),
        steps_of(job),
        "" if job.steps_redone is None else job.steps_redone,
        origin(job),
    ]


def origin(job: Job) -> str:
    """The checkpoint it went on from; said only where its program was given it, or shows it."""
    if job.resumed_from:
        return job.resumed_from.rpartition("/")[2]
    known = job.started_over or not job.checkpoint_found
    return "the beginning" if known else "not known"


def _took(job: Job, now: float) -> str:
    """How long it has run; nothing for a job that was lost, whose end nobody saw."""
    if not job.began or (job.how and not job.ended):
        return ""
    return say_duration(timedelta(seconds=max(0.0, (job.ended or now) - job.began)))


def _run_row(run: RunStatus) -> list[object]:
    last = steps_of(run.jobs[-1]) if run.jobs else ""
    state = Painted(run.state.value, _COLOURS[run.state])
    jobs = run.jobs_requested + (run.extended.jobs if run.extended else 0)
    return [run.name, run.cluster, state, f"{len(run.jobs)}/{jobs}", last, run.reason]


def metric(name: str, value: float | None) -> str:
    return f"{name} nan" if value is None else f"{name} {value:g}"


def _footnotes(run: RunStatus) -> Iterator[str]:
    for dataset in run.data:
        yield f"data: {_staged(dataset)}"
    if run.checkpoint:
        age = say_duration(timedelta(seconds=max(0.0, run.now - run.checkpoint.written)))
        size = say_size(run.checkpoint.size)
        yield f"newest valid checkpoint: {run.checkpoint.path} ({size}, {age} old)"
    yield from outlook(run)
    if run.metrics:
        values = ", ".join(metric(name, value) for name, value in run.metrics.items())
        yield f"last reported: {values}"
    for job in run.jobs[-1:]:
        if job.reason and job.reason != run.reason:
            yield f"job {job.number}: {job.reason}"
        if job.beginning_not_known:
            yield f"note: {job.beginning_not_known}"
    if run.left_running:
        counted = "1 process" if run.left_running == 1 else f"{run.left_running} processes"
        yield f"note: ended {counted} that the program left running when it finished"
        yield "  hint: if the training runs in the background, end the script with `wait`"
    if run.not_kept:
        more = ", …" if len(run.not_kept) > _NAMED else ""
        yield f"results that could not be kept: {', '.join(run.not_kept[:_NAMED])}{more}"
    if run.starts_over and run.starts_over not in run.reason:
        yield f"it starts over: {run.starts_over}"
    for problem in (*run.problems, *run.about.get("unmet", ())):
        yield f"note: {problem}"


def _staged(dataset: Staged) -> str:
    told = f"{dataset.name} ({say_size(dataset.bytes)}) {dataset.where}"
    if dataset.arriving:
        return f"{told}, arriving while the program runs"
    if dataset.seconds < 1:
        return told
    return f"{told}, staged in {say_duration(timedelta(seconds=dataset.seconds))}"
