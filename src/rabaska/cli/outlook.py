"""How fast a run goes and when it will be over, as lines for people to read."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta

from rabaska.domain.amounts import say_seconds
from rabaska.domain.runs import Forecast, RunState, RunStatus, Speed

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


def expected(told: Forecast) -> str:
    """`epoch 3 of 40, 12 min each; 5 jobs; done about Tue 14:00`"""
    parts = [f"{_place(told)}, {say_seconds(told.seconds_each)} each"]
    if told.jobs:
        parts.append(_jobs(told.jobs))
    elif told.per_job:
        parts.append(f"{told.per_job:.3g} {told.unit}s in each job")
    if told.finishes:
        parts.append(f"done about {_moment(told.finishes)}")
    return "; ".join(parts)


def _warnings(run: RunStatus, told: Forecast) -> Iterator[str]:
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


def _place(told: Forecast) -> str:
    of = "" if told.total is None else f" of {told.total:g}"
    if told.unit == "step":
        return f"step {told.done:.0f}{of}"
    under_way = math.floor(told.done) + 1
    return f"epoch {under_way if told.total is None else min(under_way, math.ceil(told.total))}{of}"


def _moment(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds).astimezone()
    soon = moment - datetime.now().astimezone() < timedelta(days=6)
    return moment.strftime("%a %H:%M" if soon else "%a %d %b %H:%M")
