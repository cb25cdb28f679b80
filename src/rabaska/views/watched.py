"""What `watch` shows of a run in its list: state, progress, forecast, newest loss, GPU use, age."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from rabaska.domain.amounts import say_duration
from rabaska.domain.runs import RunState, RunStatus
from rabaska.journeys.watch import Seen
from rabaska.views import phases
from rabaska.views.plot import number
from rabaska.views.runs import TONES, steps_of_run

_LOSSES = ("train/loss", "train_loss", "loss", "training_loss")
_STILL_TRUE = 300.0  # seconds that a measurement of a node says something of now
GPU_USE = re.compile(r"gpu\d+ use")


@dataclass(frozen=True)
class WatchedRow:
    name: str
    cluster: str
    state: str
    tone: str
    progress: str
    share: float | None  # of its steps or epochs that is done
    forecast: str
    loss: str
    gpu: str
    age: str  # of what is shown; empty while it is fresh


def watched_row(seen: Seen, now: float, fresh: float) -> WatchedRow:
    """A row; what is older than `fresh` seconds says how old it is."""
    run, record = seen.run, seen.record
    if run is None:
        return WatchedRow(record.name, record.cluster, "…", "unclear", "", None, "", "", "", "")
    share, progress = progress_of(run)
    return WatchedRow(
        name=record.name,
        cluster=record.cluster,
        state=run.state.value,
        tone=TONES[run.state],
        progress=progress,
        share=share,
        forecast=ends_in(run),
        loss=newest_loss(seen),
        gpu=gpu_use(seen),
        age=age_of(seen, now, fresh),
    )


def age_of(seen: Seen, now: float, fresh: float) -> str:
    """How old what is shown is; a run that is over does not get old."""
    old = now - seen.at
    if not seen.at or old <= fresh or (seen.run and seen.run.state.over and not seen.trouble):
        return ""
    return f"{say_duration(timedelta(seconds=round(old)))} old"


def progress_of(run: RunStatus) -> tuple[float | None, str]:
    """The share that is done, and in words: `epoch 12/40`, `steps 20-260`."""
    told = run.forecast
    if run.state is RunState.FINISHED:
        return 1.0, _counted(run)
    if told and told.total:
        done = f"{told.done:.0f}" if told.unit == "step" else f"{told.done:.3g}"
        return min(1.0, told.done / told.total), f"{told.unit} {done}/{told.total:g}"
    return None, _counted(run) or phases.now(run)


def _counted(run: RunStatus) -> str:
    steps = steps_of_run(run.jobs)
    return f"steps {steps}" if steps and not steps.startswith("epoch") else steps


def ends_in(run: RunStatus) -> str:
    """`Tue 14:00`, with how long that is; empty where it is not known, or over."""
    if run.state.over or not run.forecast or not run.forecast.finishes:
        return ""
    left = max(0.0, run.forecast.finishes - run.now)
    moment = datetime.fromtimestamp(run.forecast.finishes).astimezone()
    when = moment.strftime("%H:%M" if left < 43200 else "%a %H:%M" if left < 5e5 else "%d %b")
    return f"{when}, in {say_duration(timedelta(seconds=round(left)))}"


def main_curve(names: Iterable[str]) -> str:
    """The curve that people want to see first: the training's loss."""
    found = list(names)
    known = [name for name in _LOSSES if name in found]
    losses = [name for name in found if "loss" in name.lower() and "val" not in name.lower()]
    return next(iter([*known, *losses, *(n for n in found if "loss" in n.lower()), *found]), "")


def newest_loss(seen: Seen) -> str:
    name = main_curve(seen.curves)
    if name and len(seen.curves[name].values):
        return number(seen.curves[name].values[-1])
    metrics: Mapping[str, float | None] = seen.run.metrics if seen.run else {}
    name = main_curve(metrics)
    value = metrics.get(name)
    return "" if not name else "nan" if value is None else number(value)


def gpu_use(seen: Seen) -> str:
    """The mean of all GPUs now; empty where no node told of one lately, or nothing runs."""
    if seen.run is None or seen.run.state is not RunState.RUNNING:
        return ""
    uses = [
        curve.values[-1]
        for vitals in seen.vitals.values()
        for name, curve in vitals.items()
        if GPU_USE.fullmatch(name)
        and len(curve.values)
        and seen.run.now - curve.times[-1] < _STILL_TRUE
    ]
    return f"{sum(uses) / len(uses):.0%}" if uses else ""
