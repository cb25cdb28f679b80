"""What a run used of what it asked for, after its end: in numbers, and the line to change."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rabaska.domain.amounts import say_duration, say_size
from rabaska.domain.jobs import UsedResources
from rabaska.domain.runs import Job, RunStatus
from rabaska.node.record.out_of_memory import enough
from rabaska.views.words import NOTE, Remark

_MUCH_MEMORY = 4 * 10**9  # bytes; who asked for less wasted nothing
_SMALL_SHARE = 0.4  # of what was asked for
_ROUNDED_UP = 1.1  # times what was asked for: a GiB for a GB, and no more
_LONG_ENOUGH = 60.0  # seconds; a shorter job shows nothing


@dataclass(frozen=True)
class UseOfRun:
    """What all jobs of a run used together, and what each asked for."""

    seconds: float  # that its jobs had their nodes
    gpu_hours: float
    core_hours: float
    memory: int | None  # bytes, at the highest peak of its jobs
    memory_asked: int | None
    memory_granted: int | None  # which is more where `200 MB` are 200 MiB to the scheduler
    processor_share: float | None  # of the cores that it had


def use_of_run(run: RunStatus) -> UseOfRun | None:
    """None where no job is over, or nobody counted."""
    jobs = [job for job in run.jobs if job.used and job.how]
    if not jobs:
        return None
    asked = _asked(run)
    nodes = int(asked.get("nodes") or 1)
    spans = [_span(job) for job in jobs]
    used = [job.used or UsedResources() for job in jobs]
    cores = max((one.cores or 0 for one in used), default=0)
    busy = [(one.processor, one.seconds) for one in used if one.processor and one.seconds]
    available = sum(seconds for _, seconds in busy) * cores
    # Of a job that left no record its scheduler tells: the memory of one task, or of all nodes.
    several = nodes * int(asked.get("tasks") or 1) > 1
    own = [one for job, one in zip(jobs, used, strict=True) if not (several and job.how == "lost")]
    peaks = [one.memory for one in own if one.memory]
    return UseOfRun(
        seconds=sum(spans),
        gpu_hours=sum(spans) / 3600 * int(asked.get("gpus") or 0) * nodes,
        core_hours=sum(spans) / 3600 * _cores(asked, cores) * nodes,
        memory=max(peaks, default=None),
        memory_asked=asked.get("memory") or _granted(used),
        memory_granted=_granted(used),
        processor_share=sum(used for used, _ in busy) / available if available else None,
    )


def remarks(run: RunStatus) -> Iterator[Remark]:
    """After the end only: while a run goes on, its numbers still change."""
    used = use_of_run(run) if run.state.over else None
    if used is None:
        return
    yield Remark("", "used", _numbers(run, used))
    if used.seconds < _LONG_ENOUGH or run.is_recognised:
        return
    asked, peak = _asked(run).get("memory"), used.memory
    if asked and peak and asked >= _MUCH_MEMORY and peak < _SMALL_SHARE * asked:
        text = f"you asked for {say_size(asked)} of memory and used {say_size(peak)}"
        hint = f'`memory = "{enough(peak)}"` in [resources] would start sooner'
        yield Remark(NOTE, NOTE, text, hint)


def _numbers(run: RunStatus, used: UseOfRun) -> str:
    parts = [say_duration(timedelta(seconds=round(used.seconds)))]
    if run.walltime and len(run.jobs) == 1:
        parts[0] += f" of {say_duration(run.walltime)}"
    if used.gpu_hours:
        parts.append(f"{_two_digits(used.gpu_hours)} GPU-hours")
    if used.memory:
        whole = _memory_of(used)
        most = f" of {say_size(whole)}" if whole else ""
        parts.append(f"{say_size(used.memory)}{most} of memory")
    if used.processor_share is not None:
        parts.append(f"{min(1.0, used.processor_share):.0%} of its cores")
    return ", ".join(parts)


def _two_digits(hours: float) -> str:
    """`0.25`, `7.5`, `1,234`: two digits, or all that stand before the point."""
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def _asked(run: RunStatus) -> dict[str, Any]:
    asked = run.about.get("resources")
    return asked if isinstance(asked, dict) else {}


def _granted(used: list[UsedResources]) -> int | None:
    return max(one.memory_limit or 0 for one in used) or None


def _memory_of(used: UseOfRun) -> int | None:
    """What the memory that was used is held against."""
    asked, granted = used.memory_asked, used.memory_granted
    is_rounded = asked and granted and asked < granted < asked * _ROUNDED_UP
    return granted if is_rounded else asked


def _cores(asked: dict[str, Any], seen: int) -> int:
    return int(asked.get("cores") or 0) * int(asked.get("tasks") or 1) or seen


def _span(job: Job) -> float:
    if job.began and job.ended:
        return max(0.0, job.ended - job.began)
    return (job.used.seconds or 0.0) if job.used else 0.0
