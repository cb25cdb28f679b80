"""Where the time of a run went, job by job: every second from its submission to its end, once."""

from collections.abc import Iterator
from datetime import timedelta

from rabaska.domain.amounts import say_duration
from rabaska.domain.runs import Job, RunStatus
from rabaska.node.record import phase_names
from rabaska.views.words import Remark

QUEUE = "queue"
COMPUTING = "computing"
OTHER = "other"
BETWEEN = "between jobs"  # nothing was submitted
# As they are shown; the first are the ones that nobody wants.
NAMES = (
    BETWEEN, QUEUE, "building", "staging", "loading", phase_names.WAITING, COMPUTING,
    phase_names.VALIDATING, phase_names.LOGGING, phase_names.SAVING, OTHER,
)  # fmt: skip

_CALLED = {
    phase_names.BUILDING: "building",
    phase_names.TRAINING: COMPUTING,
    phase_names.KEEPING: OTHER,
    "": OTHER,
}
_SHARE, _SECONDS = 0.005, 2.0  # that are worth telling

Spent = dict[str, float]  # seconds, by what they were spent on


def time_spent(run: RunStatus) -> list[tuple[int, Spent]]:
    """Each job's number and its seconds; together they are the time from submission to the end."""
    told: list[tuple[int, Spent]] = []
    free: float | None = None  # when the job before was over
    for job in run.jobs:
        spent = _of_job(job, run.now)
        if job.began is not None:
            start = job.began - spent.get("building", 0.0)
            waited = _before(job.submitted, free, start)
            spent = {**waited, **spent}
            free = job.began + sum(_of_job(job, run.now).values()) - spent.get("building", 0.0)
        told.append((job.number, spent))
    return told


def of_chain(run: RunStatus) -> Spent:
    """The same of all jobs together."""
    total: Spent = {}
    for _, spent in time_spent(run):
        for name, seconds in spent.items():
            total[name] = total.get(name, 0.0) + seconds
    return {name: total[name] for name in NAMES if name in total}


def _before(submitted: float | None, free: float | None, start: float) -> Spent:
    """What passed between the job before, or the submission, and the start of this job."""
    known = [one for one in (submitted, free) if one is not None]
    if not known:
        return {}
    queued = min(max(known), start)
    found = {QUEUE: start - queued}
    if free is not None and queued > free:
        found[BETWEEN] = queued - free
    return {name: seconds for name, seconds in found.items() if seconds > 0}


def _of_job(job: Job, now: float) -> Spent:
    """From the start of its script to its end; what nobody named goes to what it does now."""
    phase = job.phase
    spent: Spent = {}
    given = dict(phase.spent) if phase else {}
    live = phase.phase if phase and not job.how else ""
    parts = dict(phase.parts) if phase and not job.how else {}
    for name, seconds in (*given.items(), *parts.items()):
        called = _CALLED.get(name, name)
        called = called if called in NAMES else OTHER
        spent[called] = spent.get(called, 0.0) + max(0.0, seconds)
    if job.began is None or (job.how and job.ended is None):
        return spent  # nobody saw its end
    whole = max(0.0, (job.ended or now) - job.began) + spent.get("building", 0.0)
    rest = whole - sum(spent.values())
    if parts or live == phase_names.SAVING:
        live = phase_names.TRAINING
    into = _CALLED.get(live, live)
    if rest >= 0:
        spent[into] = spent.get(into, 0.0) + rest
    else:
        spent = _fitted(spent, whole)
    return {name: spent[name] for name in NAMES if spent.get(name)}


def _fitted(spent: Spent, whole: float) -> Spent:
    """Seconds that were rounded, or counted while the training began: no more than there were."""
    total = sum(spent.values())
    return {name: seconds * whole / total for name, seconds in spent.items()} if total else spent


def in_words(spent: Spent) -> str:
    """`queue 2 h, staging 4 min, computing 3 h (60%), …`: what is worth telling, in its order."""
    total = sum(spent.values())
    parts = [
        f"{name} {say_duration(timedelta(seconds=round(spent[name])))} ({spent[name] / total:.0%})"
        for name in NAMES
        if total and spent.get(name, 0.0) >= max(_SECONDS, _SHARE * total)
    ]
    return ", ".join(parts)


def remarks(run: RunStatus) -> Iterator[Remark]:
    """Of the last job, and of the whole chain where there are several."""
    told = time_spent(run)
    for number, spent in told[-1:]:
        if words := in_words(spent):
            yield Remark("", f"time of job {number}", words)
    if len(told) > 1 and (words := in_words(of_chain(run))):
        yield Remark("", "time of the run", words)
