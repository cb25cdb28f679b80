"""How fast a run goes, and what it still needs, in words."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta

from rabaska.domain.amounts import say_seconds
from rabaska.domain.runs import RunForecast, RunState, RunStatus, Speed
from rabaska.views.words import NOTE, WARNING, Remark, counted

_ENDED = (RunState.FINISHED, RunState.FAILED, RunState.CANCELLED)


def remarks(run: RunStatus) -> Iterator[Remark]:
    if run.speed:
        yield Remark("", "speed", _speed(run.speed))
    if run.not_watched:
        yield Remark("", "not watched", run.not_watched)
    if run.extended:
        added = counted(run.extended.jobs, "job")
        yield Remark(NOTE, NOTE, f"extended by {added}, because {run.extended.why}")
    if run.forecast and run.state not in _ENDED:
        yield Remark("", "forecast", expected(run.forecast))
        yield from _warnings(run.name, run.forecast)


def expected(forecast: RunForecast) -> str:
    """`epoch 3 of 40, 12 min each; 5 jobs; done about Tue 14:00`"""
    parts = [f"{_place(forecast)}, {say_seconds(forecast.seconds_each)} each"]
    if forecast.jobs:
        parts.append(counted(forecast.jobs, "job"))
    elif forecast.per_job:
        parts.append(f"{forecast.per_job:.3g} {forecast.unit}s in each job")
    if forecast.finishes:
        parts.append(f"done about {_moment(forecast.finishes)}")
    return "; ".join(parts)


def _speed(speed: Speed) -> str:
    waiting = f"{speed.waiting:.0%} of it waiting for data"
    rate = f", {speed.samples_per_second:.3g} samples/s" if speed.samples_per_second else ""
    return f"{say_seconds(speed.seconds_per_step)} per step, {waiting}{rate}"


def _warnings(run: str, forecast: RunForecast) -> Iterator[Remark]:
    if forecast.stuck:
        text = f"this chain may never advance: {forecast.stuck}"
        yield Remark(WARNING, WARNING, text, forecast.hint)
    if forecast.jobs_to_come:
        submitted = f"{forecast.jobs_there} of these jobs submitted so far"
        yield Remark(NOTE, NOTE, f"{submitted}; the run adds the others when it needs them")
    if forecast.jobs_missing:
        most = counted(max(forecast.jobs_there, forecast.grows_to), "job")
        more = f"`rabaska resume {run} --jobs {forecast.jobs_missing}`"
        yield Remark(NOTE, NOTE, f"the run may have only {most}; after that, {more} adds the rest")


def _place(forecast: RunForecast) -> str:
    of = "" if forecast.total is None else f" of {forecast.total:g}"
    if forecast.unit == "step":
        return f"step {forecast.done:.0f}{of}"
    epoch = math.floor(forecast.done) + 1
    last = epoch if forecast.total is None else math.ceil(forecast.total)
    return f"epoch {min(epoch, last)}{of}"


def _moment(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds).astimezone()
    soon = moment - datetime.now().astimezone() < timedelta(days=6)
    return moment.strftime("%a %H:%M" if soon else "%a %d %b %H:%M")
