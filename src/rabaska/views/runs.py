"""A run as people see it: its state, its row, its jobs, its time line, its notes, its advice."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from rabaska.domain.amounts import say_duration, say_size
from rabaska.domain.curves import spark_line
from rabaska.domain.runs import Job, RunState, RunStatus
from rabaska.views import bottlenecks, forecast, phases, time_spent, used_resources, vitals
from rabaska.views.used_resources import UseOfRun, use_of_run
from rabaska.views.words import NOTE, WARNING, Remark, counted

TONES = {
    RunState.FINISHED: "good",
    RunState.RUNNING: "active",
    RunState.QUEUED: "waiting",
    RunState.SUBMITTING: "waiting",
    RunState.STOPPING: "caution",
    RunState.CANCELLED: "caution",
    RunState.SUSPENDED: "caution",
    RunState.INTERRUPTED: "unclear",
    RunState.UNKNOWN: "unclear",
    RunState.FAILED: "bad",
    RunState.GONE: "bad",
}
# The headings of the fields of `JobRow`, in their order.
JOB_HEADINGS = ("job", "id", "node", "time", "state", "steps", "repeated", "started from")
LOG_HEADING = "last lines of the log"
ADVICE_HEADINGS = ("what it means", "what to do")

_FILES_NAMED = 5  # in one line
_METRICS_NAMED = 3  # in one line
_SPARK, LONGEST_NAME = 40, 36  # letters: together they fit into 80 columns


@dataclass(frozen=True)
class RunRow:
    """A run in a table of runs."""

    name: str
    cluster: str
    state: str
    jobs: str  # begun/requested
    progress: str
    reason: str


@dataclass(frozen=True)
class JobRow:
    """A job in the table of a run's jobs."""

    number: int
    id: str
    node: str
    time: str  # how long it has run; empty for a job that was lost, whose end nobody saw
    state: str
    steps: str
    repeated: str  # steps that an earlier job had made
    started_from: str


@dataclass(frozen=True)
class RunEvent:
    """A moment in a run's time line."""

    job: int
    event: str  # began, ended, or the name of a phase
    at: float | None  # seconds since 1970, by the cluster's clock
    text: str


@dataclass(frozen=True)
class Advice:
    """What a failure or a long wait means, and what to do about it."""

    meaning: str
    fix: str


@dataclass(frozen=True)
class RunView:
    """All that is shown of a run at one moment."""

    name: str
    cluster: str
    state: str
    tone: str
    reason: str
    hint: str
    now: str  # what it is doing, and since when; empty after its end
    used: UseOfRun | None  # of all that its jobs asked for; None before the first is over
    summary: str  # in one line, for whoever waits
    row: RunRow
    jobs: tuple[JobRow, ...]
    timeline: tuple[RunEvent, ...]
    remarks: tuple[Remark, ...]
    log: tuple[str, ...]  # the last lines, where they may say why the run stopped
    advice: tuple[Advice, ...]
    time: tuple[tuple[int, dict[str, float]], ...] = ()  # seconds of each job, by what it did
    slow: tuple[bottlenecks.BottleneckView, ...] = ()  # the most costly first


def run_view(run: RunStatus) -> RunView:
    ended_badly = run.state in (RunState.FAILED, RunState.INTERRUPTED)
    return RunView(
        name=run.name,
        cluster=run.cluster,
        state=run.state.value,
        tone=TONES[run.state],
        reason=run.reason,
        hint=run.hint,
        now=phases.now(run),
        used=use_of_run(run),
        summary=_summary(run),
        row=run_row(run),
        jobs=tuple(_job_row(job, run.now) for job in run.jobs),
        timeline=tuple(event for job in run.jobs for event in _events(job, run.now)),
        remarks=tuple(_remarks(run)),
        log=tuple(_last_drawn(line) for line in run.tail.splitlines()) if ended_badly else (),
        advice=tuple(Advice(meaning, fix) for meaning, fix in run.explanations),
        time=tuple(time_spent.time_spent(run)),
        slow=bottlenecks.bottleneck_views(run),
    )


def labels_text(note: str, tags: Sequence[str]) -> str:
    """The note and the tags of a run in one line."""
    return " ".join([*([note] if note else []), *(f"#{tag}" for tag in tags)])


def run_row(run: RunStatus) -> RunRow:
    requested = run.jobs_requested + (run.extended.jobs if run.extended else 0)
    return RunRow(
        name=run.name,
        cluster=run.cluster,
        state=run.state.value,
        jobs=f"{len(run.jobs)}/{requested}",
        progress=steps_of_run(run.jobs),
        reason=run.reason,
    )


def after_cancel(run: RunStatus) -> tuple[Remark, ...]:
    """What `cancel` reports about the run."""
    state = run.state.value
    if run.state in (RunState.FINISHED, RunState.FAILED):
        return (Remark("", "", f"{run.name} is already {state}"),)
    if run.state is RunState.GONE:
        return (Remark("", "", f"{run.name} is gone: {run.reason}; its jobs were cancelled"),)
    resume = f"`rabaska resume {run.name}`"
    resuming = f"{resume} {run.begins_again or 'continues it'}"
    if run.starts_over:
        resuming = f"it starts over, so {resume} would begin again: {run.starts_over}"
    problems = (Remark(NOTE, NOTE, problem) for problem in run.problems)
    return (Remark("", "", f"{run.name} is {state}; {resuming}"), *problems)


def _summary(run: RunStatus) -> str:
    steps = steps_of_run(run.jobs)
    metrics = list(run.metrics.items())[:_METRICS_NAMED]
    parts = (
        f"{run.name} {run.state.value}",
        phases.now(run),
        f"job {len(run.jobs)}/{run.jobs_requested}",
        f"steps {steps}" if steps else "",
        ", ".join(_metric(name, value) for name, value in metrics),
    )
    return " · ".join(part for part in parts if part)


def _job_row(job: Job, now: float) -> JobRow:
    return JobRow(
        number=job.number,
        id=job.id,
        node=job.host,
        time=_time(job, now),
        state=job_state(job),
        steps=_steps(job),
        repeated="" if job.steps_redone is None else str(job.steps_redone),
        started_from=_started_from(job),
    )


def _events(job: Job, now: float) -> Iterator[RunEvent]:
    if job.resumed_from:
        started = f"resumed from {job.resumed_from}"
    elif _began_anew(job):
        started = "from the beginning"
    else:
        started = f"with {job.checkpoint_found} in its folder"
    yield RunEvent(job.number, "began", job.began, f"job {job.number} began, {started}")
    for phase, since in phases.phases_seen(job, now):
        yield RunEvent(job.number, phase, since, f"job {job.number}: {phase}")
    if job.how:
        text = f"job {job.number} ended: {job_state(job)}"
        yield RunEvent(job.number, "ended", job.ended, text)


def _started_from(job: Job) -> str:
    """The checkpoint it resumed from; given only where its program was given it, or shows it."""
    if job.resumed_from:
        return job.resumed_from.rpartition("/")[2]
    return "the beginning" if _began_anew(job) else "unknown"


def _began_anew(job: Job) -> bool:
    return bool(job.started_over) or not job.checkpoint_found


def job_state(job: Job) -> str:
    over = "started over; " if job.started_over else ""
    if not job.how:
        return f"{over}running"
    if job.signal:
        return f"{over}{job.how} (signal {job.signal})"
    return f"{over}{job.how} (exit code {job.exit_code})" if job.exit_code else over + job.how


def steps_of_run(jobs: Sequence[Job]) -> str:
    """From the first step of the first job to where the run is now; a job may not count yet."""
    counting = [job for job in jobs if job.last_step is not None]
    if not counting:
        return next((_steps(job) for job in reversed(jobs) if job.epoch is not None), "")
    firsts = [job.first_step for job in counting if job.first_step is not None]
    return _steps(replace(counting[-1], first_step=min(firsts, default=None)))


def _steps(job: Job) -> str:
    if job.last_step is None:
        return "" if job.epoch is None else f"epoch {job.epoch:g}"
    return f"{job.first_step}-{job.last_step}"


def _time(job: Job, now: float) -> str:
    if not job.began or (job.how and not job.ended):
        return ""
    return say_duration(timedelta(seconds=max(0.0, (job.ended or now) - job.began)))


def _metric(name: str, value: float | None) -> str:
    return f"{name} nan" if value is None else f"{name} {value:g}"


def _last_drawn(line: str) -> str:
    """What a progress bar showed last in this line."""
    return line.rpartition("\r")[2]


def _remarks(run: RunStatus) -> Iterator[Remark]:
    yield from phases.remarks(run)
    if run.note or run.tags:
        yield Remark("", "your note", labels_text(run.note, run.tags))
    if run.moved:
        yield Remark("", "it went on as", run.moved)
    if run.about.get("like"):
        yield Remark("", "made like", str(run.about["like"]))
    for dataset in run.data:
        yield Remark("", "data", phases.staged(dataset))
    if run.checkpoint:
        age = say_duration(timedelta(seconds=max(0.0, run.now - run.checkpoint.written)))
        size = say_size(run.checkpoint.size)
        text = f"{run.checkpoint.path} ({size}, {age} old)"
        yield Remark("", "newest valid checkpoint", text)
    yield from forecast.remarks(run)
    if run.metrics:
        values = ", ".join(_metric(name, value) for name, value in run.metrics.items())
        yield Remark("", "last reported", values)
    if run.curve and len(run.curve.values) > 1:
        line, name = spark_line(run.curve.values, _SPARK), run.curve.name[:LONGEST_NAME]
        yield Remark("", name, line)
    for job in run.jobs[-1:]:
        if job.reason and job.reason not in run.reason:
            yield Remark("", f"job {job.number}", job.reason)
        if job.beginning_not_known:
            yield Remark(NOTE, NOTE, job.beginning_not_known)
    yield from vitals.remarks(run)
    yield from time_spent.remarks(run)
    yield from bottlenecks.remarks(run)
    yield from used_resources.remarks(run)
    yield from _problems(run)


def _problems(run: RunStatus) -> Iterator[Remark]:
    if run.left_running:
        processes = counted(run.left_running, "process", "processes")
        yield Remark(
            NOTE,
            NOTE,
            f"ended {processes} that the program left running when it finished",
            "if the training runs in the background, end the script with `wait`",
        )
    if run.not_kept:
        more = ", …" if len(run.not_kept) > _FILES_NAMED else ""
        files = ", ".join(run.not_kept[:_FILES_NAMED])
        yield Remark(WARNING, WARNING, f"could not keep these results: {files}{more}")
    if run.starts_over and run.starts_over not in run.reason:
        yield Remark(WARNING, "it starts over", run.starts_over)
    for problem in (*run.problems, *run.about.get("unmet", ())):
        yield Remark(NOTE, NOTE, problem)
