"""What somebody wants to be told of a run: that it ended, failed, stalls, or has an idle GPU."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from urllib.parse import urlsplit

from rabaska.domain.amounts import say_duration
from rabaska.domain.curves import Curve
from rabaska.domain.runs import Job, RunState, RunStatus
from rabaska.node.record.phase_names import LOADING, TRAINING

ENDS, FAILS, STALLS, IDLES = "ends", "fails", "stalls", "idles"
KINDS = (ENDS, FAILS, STALLS, IDLES)
_BAD = (RunState.FAILED, RunState.INTERRUPTED, RunState.GONE)
_GPU_USE = re.compile(r"gpu(\d+) use")
_IDLE = 0.05  # of its time
_STILL_TRUE = 300.0  # seconds that a measurement says something of now
_GAPS = 50  # between points, among which a long one is looked for
_LONGER = 3.0  # times the longest gap so far: a validation is no stall
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_LOADING = 2.0  # times as long, before the first step


@dataclass(frozen=True)
class Limits:
    """What is told, and after how long."""

    when: tuple[str, ...] = KINDS
    stalled_after: timedelta = timedelta(minutes=30)
    idle_after: timedelta = timedelta(minutes=15)


@dataclass(frozen=True)
class Notice:
    """One thing to tell, once: `key` is the same for the same thing."""

    kind: str
    key: str
    title: str
    text: str
    age: float = 0.0  # seconds since it happened


def refused_address(address: str, token: str) -> str:
    """Why an address is not used; "" where it is."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "it is not an address"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "it must begin with https:// or http://"
    if token and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        return "with a token it must begin with https://, or others could read the token"
    return ""


def notices(
    run: RunStatus,
    curves: Mapping[str, Curve],
    vitals: Mapping[str, Mapping[str, Curve]],
    limits: Limits,
) -> list[Notice]:
    """All that is to be told of the run as it is now; what was told before is known elsewhere."""
    found = [*_over(run), *_stalled(run, curves.values(), limits), *_idle(run, vitals, limits)]
    return [notice for notice in found if notice.kind in limits.when]


def _over(run: RunStatus) -> Iterator[Notice]:
    """That it ended; who cancelled it knows."""
    bad = run.state in _BAD
    if not bad and run.state is not RunState.FINISHED:
        return
    ended = run.jobs[-1].ended if run.jobs else None
    metrics = ", ".join(
        f"{name} {'nan' if value is None else f'{value:g}'}" for name, value in run.metrics.items()
    )
    told = [run.reason, run.hint, metrics] if bad else [metrics]
    yield Notice(
        FAILS if bad else ENDS,
        f"{run.state.value}-{len(run.jobs)}",
        f"{run.name} on {run.cluster}: {run.state.value}",
        "\n".join(text for text in told if text),
        max(0.0, run.now - ended) if ended else 0.0,
    )


def _stalled(run: RunStatus, curves: Iterable[Curve], limits: Limits) -> Iterator[Notice]:
    job = _at_work(run)
    if job is None or job.phase is None or job.phase.since is None:
        return
    since, patience = job.phase.since, limits.stalled_after.total_seconds()
    if job.phase.phase == LOADING:
        patience *= _LOADING
    elif job.phase.phase == TRAINING:
        told = [curve for curve in curves if len(curve.times)]
        if not told:
            return
        newest = max(told, key=lambda curve: curve.times[-1])
        since = max(since, newest.times[-1])
        patience = max(patience, _LONGER * _longest_gap(newest))
    else:
        return
    silent = run.now - since
    if silent > patience:
        step = "" if job.last_step is None else f" after step {job.last_step}"
        yield Notice(
            STALLS,
            f"stalls-{job.number}-{job.last_step}",
            f"{run.name} on {run.cluster}: no step for {_for(silent)}",
            f"job {job.number} on {job.host or 'its node'} reports nothing new{step}; "
            f"`rabaska logs {run.name}` shows what it printed last",
        )


def _longest_gap(curve: Curve) -> float:
    times = curve.times[-_GAPS:]
    return max((after - before for before, after in pairwise(times)), default=0)


def _idle(
    run: RunStatus, vitals: Mapping[str, Mapping[str, Curve]], limits: Limits
) -> Iterator[Notice]:
    job = _at_work(run)
    if job is None or job.phase is None or job.phase.phase != TRAINING:
        return
    window = limits.idle_after.total_seconds()
    if job.phase.since is None or run.now - job.phase.since < window:
        return
    names = [
        f"GPU {match[1]} of {node}"
        for node, measured in vitals.items()
        for name, curve in measured.items()
        if (match := _GPU_USE.fullmatch(name)) and _was_idle(curve, run.now, window)
    ]
    if names:
        verb = "is" if len(names) == 1 else "are"
        yield Notice(
            IDLES,
            f"idles-{job.number}",
            f"{run.name} on {run.cluster}: {names[0] if len(names) == 1 else 'GPUs'} {verb} idle",
            f"{', '.join(names)}: used less than {_IDLE:.0%} of the last {_for(window)}; "
            f"`rabaska explain {run.name}` says why",
        )


def _was_idle(curve: Curve, now: float, window: float) -> bool:
    times, values = curve.times, curve.values
    if not len(times) or times[0] > now - window or now - times[-1] > _STILL_TRUE:
        return False
    lately = [value for at, value in zip(times, values, strict=True) if at > now - window]
    return bool(lately) and all(value < _IDLE for value in lately)


def _at_work(run: RunStatus) -> Job | None:
    last = run.jobs[-1] if run.jobs and run.state is RunState.RUNNING else None
    return last if last and not last.how else None


def _for(seconds: float) -> str:
    return say_duration(timedelta(seconds=round(seconds)))
