"""The chain of a run over time: when each job waited, what it did, and why it ended."""

from collections.abc import Iterator
from dataclasses import dataclass

from rabaska.domain.runs import Job, RunStatus
from rabaska.node.record.phase_names import TRAINING
from rabaska.views.runs import job_state
from rabaska.views.time_spent import BETWEEN, COMPUTING, NAMES, OTHER, QUEUE, Spent, time_spent

KINDS = NAMES

_SHORTEST = 0.5  # seconds of a stretch that is worth drawing
_BEFORE = (BETWEEN, QUEUE)  # it had its node
_TONES = {"finished": "good", "time limit": "waiting", "": "active", "lost": "unclear"}


@dataclass(frozen=True)
class Stretch:
    """A time in which a job did one thing."""

    kind: str  # one of KINDS
    start: float  # seconds since 1970
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class JobBar:
    """A job of the chain over time."""

    job: int
    id: str
    host: str
    start: float  # of its time in the queue, where that is known
    end: float
    stretches: tuple[Stretch, ...]
    ended: str  # how, in words; `running` while it runs
    reason: str
    tone: str


def time_line(run: RunStatus) -> tuple[JobBar, ...]:
    """A bar for each job that began; it also shows how long the run waited for it."""
    spent = dict(time_spent(run))
    begun = [job for job in run.jobs if job.began]
    bars: list[JobBar] = []
    for place, job in enumerate(begun):
        told = dict(spent.get(job.number, {}))
        if place and not begun[place - 1].ended:  # it was lost, and its end is drawn until here
            told = {kind: seconds for kind, seconds in told.items() if kind not in _BEFORE}
        elif not place and QUEUE not in told and 0 < run.created < _start(job, told):
            told[QUEUE] = _start(job, told) - run.created
        after = begun[place + 1] if place + 1 < len(begun) else None
        bars.append(_bar(job, told, _end(job, run.now, after, spent)))
    return tuple(bars)


def _start(job: Job, spent: Spent) -> float:
    """When it was given its node: its environment is built before the rest."""
    return (job.began or 0.0) - spent.get("building", 0.0)


def _bar(job: Job, spent: Spent, end: float) -> JobBar:
    stretches = tuple(_stretches(job, spent, end))
    return JobBar(
        job=job.number,
        id=job.id,
        host=job.host,
        start=stretches[0].start if stretches else job.began or 0.0,
        end=end,
        stretches=stretches,
        ended=job_state(job),
        reason="" if job.reason == f"the program {job.how}" else job.reason,
        tone=_TONES.get(job.how, "bad"),
    )


def _end(job: Job, now: float, after: Job | None, spent: dict[int, Spent]) -> float:
    """Of a job that was lost only that it was before the next began."""
    began = job.began or 0.0
    if job.ended:
        return max(began, job.ended)
    return max(began, now if after is None else _start(after, spent.get(after.number, {})))


def _stretches(job: Job, spent: Spent, end: float) -> Iterator[Stretch]:
    """One after another: a program saves now and then, which is drawn as one time."""
    at = _start(job, spent) - sum(spent.get(kind, 0.0) for kind in _BEFORE)
    for kind in KINDS:
        seconds = min(spent.get(kind, 0.0), end - at)
        if seconds > 0:
            yield Stretch(kind, at, at + seconds)
            at += seconds
    if end - at >= _SHORTEST:
        trained = job.phase is not None and job.phase.phase == TRAINING
        yield Stretch(COMPUTING if trained or not spent else OTHER, at, end)
