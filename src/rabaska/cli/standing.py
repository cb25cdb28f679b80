"""How runs stand, as lines for people to read."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from rabaska.cli.columns import Painted, columns, painted
from rabaska.cli.outlook import outlook
from rabaska.domain.amounts import say_duration, say_size
from rabaska.domain.runs import Job, RunState, RunStatus, Staged

_NAMED = 5  # files in one line
_COLOURS = {
    RunState.FINISHED: "green", RunState.RUNNING: "cyan", RunState.QUEUED: "blue",
    RunState.STOPPING: "yellow", RunState.FAILED: "red", RunState.CANCELLED: "yellow",
    RunState.INTERRUPTED: "magenta", RunState.UNKNOWN: "magenta", RunState.SUBMITTING: "blue",
    RunState.GONE: "red",
    RunState.SUSPENDED: "yellow",
}  # fmt: skip


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
        job.number, job.id, job.host, _took(job, now), how_it_ended(job), steps_of(job),
        "" if job.steps_redone is None else job.steps_redone,
        origin(job),
    ]  # fmt: skip


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
