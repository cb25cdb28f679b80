"""A run and its links: how they are named, and how they stand."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any


def new_name(project: str) -> str:
    """`cats-7f3a`: the project's name in letters every file system and scheduler accepts."""
    import re
    import secrets
    import unicodedata  # imported here, for most commands name no run

    plain = unicodedata.normalize("NFKD", project).encode("ascii", "ignore").decode().lower()
    stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:24].strip("-") or "run"
    return f"{stem}-{secrets.token_hex(2)}"


_UNFINISHED = 10  # the exit code of `errors.RunFailed`
_CANNOT_ADVANCE = 14  # and of `errors.CannotAdvance`


class RunState(Enum):
    QUEUED = "queued"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"  # nothing runs, nothing waits, and there is work left
    UNKNOWN = "unknown"

    @property
    def over(self) -> bool:
        return self in (
            RunState.FINISHED, RunState.FAILED, RunState.CANCELLED, RunState.INTERRUPTED,
        )  # fmt: skip


@dataclass(frozen=True)
class Link:
    """One job of the chain, as its own records tell it."""

    number: int
    job: str = ""
    host: str = ""
    pid: int | None = None
    began: float | None = None  # seconds since 1970
    ended: float | None = None
    how: str = ""  # finished, time limit, crashed, killed …; empty while it runs
    reason: str = ""
    exit_code: int | None = None
    signal: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    steps_redone: int | None = None
    epoch: float | None = None
    resumed_from: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """The newest valid state that a run could go on from."""

    path: str
    size: int  # bytes
    written: float  # seconds since 1970


@dataclass(frozen=True)
class Staged:
    """Where the last link put a dataset on its node."""

    name: str
    bytes: int
    where: str  # in words
    seconds: float
    arriving: bool = False  # whether the program started before all of it was there


@dataclass(frozen=True)
class Speed:
    """How fast a watched program went in the last minutes."""

    at: float  # seconds since 1970
    steps: int  # since its link began
    epochs: int
    seconds_per_step: float
    waiting: float  # the share of its time that it waited for data
    samples_per_second: float | None = None
    saves: int = 0


@dataclass(frozen=True)
class Forecast:
    """What is left to do, at the pace of the last link."""

    unit: str  # epoch or step
    done: float
    total: float | None
    seconds_each: float
    per_link: float  # units that outlive a link
    links: int | None  # that the run needs from its first to its last
    finishes: float | None  # seconds since 1970, by the cluster's clock
    stuck: str = ""  # why no further link can help
    hint: str = ""
    links_there: int = 0  # that were submitted
    grows_to: int = 0  # links that the run adds by itself, as it needs them

    @property
    def links_to_come(self) -> int:
        """That the run will submit itself."""
        return max(0, min(self.links or 0, self.grows_to) - self.links_there)

    @property
    def links_missing(self) -> int:
        """That somebody has to add."""
        return max(0, (self.links or 0) - max(self.links_there, self.grows_to))


@dataclass(frozen=True)
class Extension:
    """What a run added to its chain by itself."""

    links: int
    why: str


@dataclass(frozen=True)
class RunStatus:
    """All that is known of a run at one moment."""

    name: str
    cluster: str
    state: RunState
    reason: str = ""
    hint: str = ""
    links_asked: int = 0
    walltime: timedelta = timedelta(0)
    links: tuple[Link, ...] = ()
    data: tuple[Staged, ...] = ()
    checkpoint: Checkpoint | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    speed: Speed | None = None  # of a program that is watched
    not_watched: str = ""  # why it is not
    forecast: Forecast | None = None
    extended: Extension | None = None
    tail: str = ""
    explanations: tuple[tuple[str, str], ...] = ()  # what a failure means, what to do
    about: dict[str, Any] = field(default_factory=dict)
    path: str = ""
    problems: tuple[str, ...] = ()
    job: str = ""  # the newest submission, as the cluster named it
    now: float = 0.0  # when this was so, by the cluster's own clock: ours may be off by an hour

    @property
    def verdict(self) -> int:
        """The exit code that `wait` gives: the program's own where it has one."""
        if self.state is RunState.FINISHED:
            return 0
        last = self.links[-1] if self.links and self.state is RunState.FAILED else Link(0)
        if last.how == "time limit":
            return _CANNOT_ADVANCE  # the chain gave up, for nothing was saved before it
        return last.exit_code or (128 + last.signal if last.signal else _UNFINISHED)
