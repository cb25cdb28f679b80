"""A run and its jobs: how they are named, and their status."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any

from rabaska.domain.jobs import Rank, UsedResources

Draw = Callable[[int], str]  # so many random bytes, as hexadecimal digits

_SHORT_NAMES = 8  # that are tried before longer ones


def names_for(project: str, draw: Draw | None = None) -> Iterator[str]:
    """`cats-7f3a`: the project's name in letters every file system and scheduler accepts.

    A name is for people, and may be taken already: then the next is tried, and soon longer ones.
    What a run is known by is its id.
    """
    import re
    import secrets
    import unicodedata  # imported here, for most commands name no run

    draw = draw or secrets.token_hex
    plain = unicodedata.normalize("NFKD", project).encode("ascii", "ignore").decode().lower()
    stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:24].strip("-") or "run"
    for _ in range(_SHORT_NAMES):
        yield f"{stem}-{draw(2)}"
    while True:
        yield f"{stem}-{draw(6)}"


def new_name(project: str) -> str:
    """A name for something that no other command will ask for."""
    return next(names_for(project))


@dataclass(frozen=True)
class Labels:
    """What people say of a run, and where it comes from."""

    note: str = ""
    tags: tuple[str, ...] = ()
    like: str = ""  # the run that it continues or repeats, and its cluster


@dataclass(frozen=True)
class Checks:
    """Whether a project is checked before it is sent, and what that may stop."""

    wanted: bool = True
    anyway: bool = False  # what a check refuses is only reported


_DAMAGED = 5  # the exit code of `errors.DamagedPack`
_UNFINISHED = 10  # and of `errors.RunFailed`
_CANNOT_ADVANCE = 14  # and of `errors.CannotAdvance`
_STARTS_OVER = 17  # and of `errors.StartsOver`
RECOGNISED = ("out of memory", "quota exceeded", "disk full", "no GPU")  # ends of jobs
_RESULTS_MISSING = 18  # and of `errors.ResultsMissing`


class RunState(Enum):
    SUBMITTING = "submitting"  # the cluster has not answered yet
    QUEUED = "queued"
    RUNNING = "running"
    SUSPENDED = "suspended"  # its scheduler stopped it, and will continue it
    STOPPING = "stopping"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"  # nothing runs, nothing waits, and there is work left
    GONE = "gone"  # its folder is not there, or is another run's
    UNKNOWN = "unknown"

    @property
    def over(self) -> bool:
        return self in (
            RunState.FINISHED,
            RunState.FAILED,
            RunState.CANCELLED,
            RunState.INTERRUPTED,
            RunState.GONE,
        )


@dataclass(frozen=True)
class Phase:
    """What a job is doing, and since when."""

    phase: str = ""  # as its own record calls it; "" after its end
    since: float | None = None  # seconds since 1970
    spent: dict[str, float] = field(default_factory=dict)  # seconds in each phase that is over
    parts: dict[str, float] = field(default_factory=dict)  # seconds of the training so far
    what: str = ""  # the dataset or the package that it is busy with
    done: int | None = None  # bytes
    total: int | None = None
    rate: float | None = None  # bytes per second


@dataclass(frozen=True)
class Waiting:
    """A job that waits in the queue, or has just been given its node."""

    reason: str = ""  # in its scheduler's words
    since: float | None = None  # seconds since 1970
    starts: float | None = None  # when its scheduler expects to start it; a guess
    place: int | None = None  # in the line, 1 is next; None: nobody knows


@dataclass(frozen=True)
class Job:
    """One job of the chain, as its own records have it."""

    number: int
    id: str = ""  # as its scheduler calls it
    host: str = ""
    pid: int | None = None
    submitted: float | None = None  # seconds since 1970
    began: float | None = None
    ended: float | None = None
    how: str = ""  # finished, time limit, crashed, killed …; empty while it runs
    reason: str = ""
    exit_code: int | None = None
    signal: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    steps_redone: int | None = None  # that an earlier job had made
    epoch: float | None = None
    resumed_from: str = ""  # the checkpoint
    checkpoint_found: str = ""  # the newest valid one when it began
    started_over: str = ""  # what shows that it did not, though there was one
    beginning_not_known: str = ""  # why nobody can say whether it did, where that is a warning
    phase: Phase | None = None
    used: UsedResources | None = None


@dataclass(frozen=True)
class Checkpoint:
    """The newest valid state that a run could resume from."""

    path: str
    size: int  # bytes
    written: float  # seconds since 1970


@dataclass(frozen=True)
class Staged:
    """Where the last job put a dataset on its node."""

    name: str
    bytes: int
    where: str  # in words
    seconds: float
    arriving: bool = False  # whether the program started before all of it was there


@dataclass(frozen=True)
class Speed:
    """How fast a watched program went in the last minutes."""

    at: float  # seconds since 1970
    steps: int  # since its job began
    epochs: int
    seconds_per_step: float
    waiting: float  # the share of its time that it waited for data
    samples_per_second: float | None = None
    saves: int = 0
    seconds: float = 0.0  # that this is about
    workers: int | None = None  # that load data
    batch_size: int | None = None
    saves_lately: int = 0
    # Of its time, besides waiting: saving, validating, logging; starting workers and, without
    # workers, fetching (the part of the waiting in which it had the processor).
    shares: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RunForecast:
    """What is left to do, at the pace of the last job."""

    unit: str  # epoch or step
    done: float
    total: float | None
    seconds_each: float
    per_job: float  # units that outlive a job
    jobs: int | None  # that the run needs from its first to its last
    finishes: float | None  # seconds since 1970, by the cluster's clock
    stuck: str = ""  # why no further job can help
    hint: str = ""
    jobs_there: int = 0  # that were submitted
    grows_to: int = 0  # jobs that the run adds by itself, as it needs them

    @property
    def jobs_to_come(self) -> int:
        """That the run will submit itself."""
        return max(0, min(self.jobs or 0, self.grows_to) - self.jobs_there)

    @property
    def jobs_missing(self) -> int:
        """That somebody has to add."""
        return max(0, (self.jobs or 0) - max(self.jobs_there, self.grows_to))


@dataclass(frozen=True)
class MainCurve:
    """The course of the metric that matters most, in a few values."""

    name: str
    values: Sequence[float | None] = ()  # None: not a finite number


@dataclass(frozen=True)
class Extension:
    """What a run added to its chain by itself."""

    jobs: int
    why: str


@dataclass(frozen=True)
class RunStatus:
    """All that is known of a run at one moment."""

    name: str
    cluster: str
    state: RunState
    reason: str = ""
    hint: str = ""
    jobs_requested: int = 0
    walltime: timedelta = timedelta(0)
    jobs: tuple[Job, ...] = ()
    data: tuple[Staged, ...] = ()
    checkpoint: Checkpoint | None = None
    metrics: dict[str, float | None] = field(default_factory=dict)  # None: not a finite number
    curve: MainCurve | None = None
    speed: Speed | None = None  # of a program that is watched
    vitals: dict[str, dict[str, float]] = field(default_factory=dict)  # by node: recent means
    ranks: tuple[Rank, ...] = ()  # of several processes
    not_watched: str = ""  # why it is not
    left_running: int = 0  # processes that its program left, which were ended when it finished
    not_kept: tuple[str, ...] = ()  # files that its jobs left and that could not be kept
    moved: str = ""  # the run as which it went on, and its cluster
    command: tuple[str, ...] = ()
    note: str = ""
    tags: tuple[str, ...] = ()
    created: float = 0.0  # seconds since 1970, by the clock of whoever submitted it
    begins_again: str = ""  # that and why `resume` would, or may, begin again; "": it continues
    waiting: Waiting | None = None  # the job that is next, while none runs
    starting: Phase | None = None  # of a job that has its node and has not begun
    restarts: tuple[str, ...] = ()  # why its scheduler ended the newest job and queued it again
    forecast: RunForecast | None = None
    extended: Extension | None = None
    tail: str = ""
    explanations: tuple[tuple[str, str], ...] = ()  # what a failure means, what to do
    about: dict[str, Any] = field(default_factory=dict)
    path: str = ""
    problems: tuple[str, ...] = ()
    job_id: str = ""  # the newest submission, as the cluster named it
    submission: str = ""  # what we called it
    now: float = 0.0  # when this was so, by the cluster's own clock: ours may be off by an hour

    @property
    def is_recognised(self) -> bool:
        """Whether it failed of something whose remedy is known: memory, a disk, a missing GPU."""
        failed = self.state is RunState.FAILED and bool(self.jobs)
        return failed and self.jobs[-1].how in RECOGNISED and bool(self.hint)

    @property
    def starts_over(self) -> str:
        """What shows that it does not resume from its checkpoints; empty: nothing does.

        A job that was resumed has the same code, and may not have shown anything yet.
        """
        shown = [job.started_over for job in self.jobs if job.started_over]
        return shown[-1] if shown and self.state is not RunState.FINISHED else ""

    @property
    def verdict(self) -> int:
        """The exit code that `wait` gives: the program's own where it has one."""
        if self.state is RunState.FINISHED:
            return 0
        last = self.jobs[-1] if self.jobs and self.state is RunState.FAILED else Job(0)
        if last.how == "damaged data":
            return _DAMAGED  # the program was asked to stop: its own end says nothing
        if last.how == "results missing":
            return _RESULTS_MISSING
        if last.started_over:
            return _STARTS_OVER
        if last.how == "time limit":
            return _CANNOT_ADVANCE  # the chain gave up, for nothing was saved before it
        return last.exit_code or (128 + last.signal if last.signal else _UNFINISHED)
