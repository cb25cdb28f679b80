"""What a run cost: the time of its jobs, what of it was wasted, and its energy if it is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from rabaska.domain.amounts import say_duration
from rabaska.domain.curves import Curve
from rabaska.domain.runs import Job, RunState, RunStatus
from rabaska.views.time_line import JobBar, time_line
from rabaska.views.time_spent import BETWEEN, COMPUTING, QUEUE

Vitals = Mapping[str, Mapping[str, Curve]]  # by node, then by name

_LONGEST_GAP = 120.0  # seconds between two samples; a longer one is no measurement
_JOULES = 3.6e6  # in a kilowatt-hour
_PREPARING = ("building", "staging", "loading")


@dataclass(frozen=True)
class RunCost:
    """Times are seconds that its jobs had their nodes."""

    seconds: float
    waited: float  # in the queue
    prepared: float  # the environment, the data, loading
    repeated: float  # steps that an earlier job had made
    lost: float  # after the newest checkpoint of a run that did not finish
    gpus: int  # of all nodes together
    gpu_use: float | None  # the share of time in which they computed; None: not measured
    energy: float | None  # kWh of the GPUs; None: not measured

    @property
    def gpu_hours(self) -> float:
        return self.seconds / 3600 * self.gpus

    @property
    def wasted(self) -> float:
        """Seconds that brought the training nothing."""
        return min(self.seconds, self.repeated + self.lost)


def run_cost(run: RunStatus, vitals: Vitals | None = None) -> RunCost:
    bars = time_line(run)
    asked = run.about.get("resources")
    asked = asked if isinstance(asked, dict) else {}
    jobs = {job.number: job for job in run.jobs}
    return RunCost(
        seconds=sum(
            one.seconds for bar in bars for one in bar.stretches if one.kind not in (QUEUE, BETWEEN)
        ),
        waited=_sum(bars, (QUEUE,)),
        prepared=_sum(bars, _PREPARING),
        repeated=sum(_repeated(jobs[bar.job], bar) for bar in bars),
        lost=_lost(run, bars),
        gpus=int(asked.get("gpus") or 0) * int(asked.get("nodes") or 1),
        gpu_use=_gpu_use(vitals or {}),
        energy=_energy(vitals or {}),
    )


def cost_facts(cost: RunCost) -> dict[str, str]:
    """Each with its label; what is not known is left out."""
    facts = {
        "time on nodes": _say(cost.seconds),
        "GPU-hours": f"{_hours(cost.gpu_hours)} on {cost.gpus} GPUs" if cost.gpus else "",
        "wasted": _wasted(cost),
        "preparing": _share(cost.prepared, cost),
        "in the queue": _say(cost.waited) if cost.waited >= 1 else "",
        "GPU use": "" if cost.gpu_use is None else f"{cost.gpu_use:.0%} of the time",
        "energy": "" if cost.energy is None else f"{cost.energy:.3g} kWh of the GPUs",
    }
    return {label: text for label, text in facts.items() if text}


def _wasted(cost: RunCost) -> str:
    if not cost.seconds:
        return ""
    hours = cost.wasted / 3600 * cost.gpus
    amount = f"{_hours(hours)} GPU-hours, " if cost.gpus else ""
    parts = [f"{amount}{_share(cost.wasted, cost) or 'nothing'}"]
    if cost.repeated >= 1:
        parts.append(f"{_say(cost.repeated)} for steps that were made before")
    if cost.lost >= 1:
        parts.append(f"{_say(cost.lost)} after the newest checkpoint")
    return "; ".join(parts)


def _share(seconds: float, cost: RunCost) -> str:
    if seconds < 1 or not cost.seconds:
        return ""
    return f"{_say(seconds)} ({seconds / cost.seconds:.0%})"


def _say(seconds: float) -> str:
    return say_duration(timedelta(seconds=round(seconds)))


def _hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def _sum(bars: tuple[JobBar, ...], kinds: tuple[str, ...]) -> float:
    return sum(one.seconds for bar in bars for one in bar.stretches if one.kind in kinds)


def _repeated(job: Job, bar: JobBar) -> float:
    """At the pace of the job that made the steps again."""
    if not job.steps_redone or job.first_step is None or job.last_step is None:
        return 0.0
    made = max(job.last_step - job.first_step, job.steps_redone, 1)
    return _sum((bar,), (COMPUTING,)) * job.steps_redone / made


def _lost(run: RunStatus, bars: tuple[JobBar, ...]) -> float:
    if not bars or not run.state.over or run.state is RunState.FINISHED:
        return 0.0
    began = next((job.began for job in run.jobs if job.number == bars[-1].job), None)
    saved = run.checkpoint.written if run.checkpoint else 0.0
    return max(0.0, bars[-1].end - max(saved, began or 0.0))


def _gpu_use(vitals: Vitals) -> float | None:
    curves = _gpu_curves(vitals, " use")
    values = [value for curve in curves for value in curve.values if value == value]
    return sum(values) / len(values) if values else None


def _energy(vitals: Vitals) -> float | None:
    joules = [_integral(curve) for curve in _gpu_curves(vitals, " power")]
    return sum(joules) / _JOULES if joules else None


def _gpu_curves(vitals: Vitals, ending: str) -> list[Curve]:
    return [
        curve
        for of_node in vitals.values()
        for name, curve in of_node.items()
        if name.startswith("gpu") and name.endswith(ending) and len(curve) > 1
    ]


def _integral(curve: Curve) -> float:
    times, values = curve.times, curve.values
    return sum(
        (later - earlier) * (before + after) / 2
        for earlier, later, before, after in zip(times, times[1:], values, values[1:], strict=False)
        if 0 < later - earlier <= _LONGEST_GAP and before == before and after == after
    )
