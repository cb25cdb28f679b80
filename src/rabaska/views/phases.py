"""What a run is doing now, in words: why it waits, what it stages, how long each phase took."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from rabaska.domain.amounts import say_duration, say_size
from rabaska.domain.runs import Job, Phase, RunState, RunStatus, Staged, Waiting
from rabaska.node.record.phase_names import LOADING, LOGGING, ORDER, VALIDATING, WAITING
from rabaska.views.words import WARNING, Remark, counted

_WORTH_TELLING = 2.0  # seconds of a phase
_LONG_LOADING = 300.0  # seconds after which a program that tells of no step seems to train
_LIVE = (RunState.QUEUED, RunState.RUNNING, RunState.STOPPING, RunState.SUSPENDED)


def now(run: RunStatus) -> str:
    """`staging imagenet: 1.2 of 4 GB, 90 MB/s`; empty of a run that is over."""
    if run.state not in _LIVE:
        return ""
    if run.starting:
        return _phase(run.starting, run.now)
    if run.waiting and run.state is RunState.QUEUED:
        return _waiting(run.waiting, run.now)
    last = run.jobs[-1] if run.jobs else None
    if last is None or last.how or last.phase is None or not last.phase.phase:
        return ""
    return _phase(last.phase, run.now)


def remarks(run: RunStatus) -> Iterator[Remark]:
    doing = now(run)
    if doing:
        yield Remark("", "now", doing)
    if run.restarts and not run.state.over:
        times = counted(len(run.restarts), "time")
        text = f"its scheduler started this job again {times}; the last time, {run.restarts[-1]}"
        hint = (
            "if that happens again, `rabaska cancel` it and report its node to the site's support"
        )
        yield Remark(WARNING, "attempt " + str(len(run.restarts) + 1), text, hint)


def phases_seen(job: Job, now: float) -> Iterator[tuple[str, float | None]]:
    """The phases that lasted long enough to be told, in their order, and when each began."""
    if job.phase is None:
        return
    for name in _told(job):
        yield name, None
    since = job.phase.since
    if job.phase.phase and since is not None and now - since >= _WORTH_TELLING:
        yield job.phase.phase, since


def _told(job: Job) -> dict[str, float]:
    """Seconds in each phase that is over and lasted long enough, in the order of a job."""
    spent = dict(job.phase.spent) if job.phase else {}
    for part in (WAITING, VALIDATING, LOGGING):  # they come and go: `time_spent` has them
        spent.pop(part, None)
    names = sorted(spent, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    return {name: spent[name] for name in names if spent[name] >= _WORTH_TELLING}


def _phase(phase: Phase, now: float) -> str:
    lasted = None if phase.since is None else max(0.0, now - phase.since)
    name = phase.phase
    if name == LOADING and lasted is not None and lasted > _LONG_LOADING:
        name = "running, no step seen yet"
    if phase.done is not None and phase.total:
        rate = f", {say_size(int(phase.rate))}/s" if phase.rate else ""
        left = f"{say_size(phase.done)} of {say_size(phase.total)}{rate}"
        return f"{name} {phase.what}: {left}"
    since = f" for {_for(lasted)}" if lasted is not None and lasted >= 1 else ""
    return f"{name}{since}{f': {phase.what}' if phase.what else ''}"


def _waiting(waiting: Waiting, now: float) -> str:
    parts = ["in the queue"]
    if waiting.since is not None and now - waiting.since >= 1:
        parts[0] += f" for {_for(now - waiting.since)}"
    if waiting.place is not None:
        parts.append(f"place {waiting.place} in the line")
    if why := waiting_in_words(waiting.reason):
        parts.append(why)
    if waiting.starts is not None and waiting.starts > now:
        parts.append(f"expected to start {_moment(waiting.starts)}")
    return "; ".join(parts)


def waiting_in_words(reason: str) -> str:
    """`other jobs come first (Priority)`; as it is, where nobody knows what it means."""
    from rabaska.knowledge.queue_reasons import reason_for  # few commands show one

    known = reason_for(reason) if reason else None
    if known is None:
        return reason
    meaning = known.meaning.rstrip(".")
    return f"{meaning[:1].lower()}{meaning[1:]} ({reason})"


def _for(seconds: float) -> str:
    return say_duration(timedelta(seconds=round(seconds)))


def _moment(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds).astimezone()
    today = moment.date() == datetime.now().astimezone().date()
    return moment.strftime("at %H:%M" if today else "on %a %d %b at %H:%M")


def staged(dataset: Staged) -> str:
    size = f" ({say_size(dataset.bytes)})" if dataset.bytes else ""
    text = f"{dataset.name}{size} {dataset.where}"
    if dataset.arriving:
        return f"{text}, still being copied while the program runs"
    if dataset.seconds < 1:
        return text
    return f"{text}, staged in {say_duration(timedelta(seconds=dataset.seconds))}"
