"""A run's chain of jobs as one line of time: waiting, starting, training, how each job ended."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rabaska.domain.runs import Job, RunState, RunStatus
from rabaska.node.record.phase_names import KEEPING, SAVING, TRAINING

WAITS, STARTS, TRAINS, NOTHING = "waits", "starts", "trains", ""
_AT_WORK = (TRAINING, SAVING, KEEPING)


@dataclass(frozen=True)
class Stretch:
    """A part of the time of a run."""

    kind: str  # waits, starts, trains; "" where nothing is there
    seconds: float
    job: int  # 0: of none


@dataclass(frozen=True)
class Piece:
    """A part of the line as it is drawn."""

    kind: str
    job: int
    width: int  # letters


def stretches(run: RunStatus) -> tuple[Stretch, ...]:
    """The time of a run from its submission to its end, or to now."""
    found: list[Stretch] = []
    at = run.created or min((job.began for job in run.jobs if job.began), default=0.0)
    for job in run.jobs:
        if not job.began:
            continue
        found.append(Stretch(WAITS, max(0.0, job.began - at), job.number))
        found += _of_job(job, run.now)
        at = max(at, job.ended or job.began)
    if run.state in (RunState.QUEUED, RunState.SUBMITTING) and at:
        found.append(Stretch(WAITS, max(0.0, run.now - at), 0))
    return tuple(stretch for stretch in found if stretch.seconds > 0)


def _of_job(job: Job, now: float) -> Iterator[Stretch]:
    lasted = max(0.0, (job.ended or (job.began if job.how else now) or 0.0) - (job.began or 0.0))
    spent = job.phase.spent if job.phase else {}
    current = job.phase.phase if job.phase else ""
    starting = sum(seconds for name, seconds in spent.items() if name not in _AT_WORK)
    if current and current not in _AT_WORK:
        starting = lasted
    starting = min(lasted, starting)
    yield Stretch(STARTS, starting, job.number)
    yield Stretch(TRAINS, lasted - starting, job.number)


def pieces(parts: Sequence[Stretch], width: int) -> tuple[Piece, ...]:
    """The same in so many letters; what is short gets one letter while there is room."""
    total = sum(part.seconds for part in parts)
    if width < 1 or total <= 0:
        return ()
    if len(parts) >= width:
        return _sampled(parts, width, total)
    spare = width - len(parts)
    ends, so_far = [0], 0.0
    for part in parts:
        so_far += part.seconds
        ends.append(round(spare * so_far / total))
    return tuple(
        Piece(part.kind, part.job, 1 + end - start)
        for part, start, end in zip(parts, ends, ends[1:], strict=False)
    )


def _sampled(parts: Sequence[Stretch], width: int, total: float) -> tuple[Piece, ...]:
    """More parts than letters: each letter shows what was there at its time."""
    found, place, ends = [], 0, parts[0].seconds
    for column in range(width):
        moment = (column + 0.5) * total / width
        while moment > ends and place + 1 < len(parts):
            place += 1
            ends += parts[place].seconds
        found.append(Piece(parts[place].kind, parts[place].job, 1))
    return tuple(found)
