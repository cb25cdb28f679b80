"""The jobs of a run as `report` lists them: how each began and ended, and what it printed."""

import math
import os
import time
from typing import Any, Dict, List, Optional, Tuple

from .. import files
from ..record import (
    chain_rule,
    field_types,
    jobs,
    phases,
    plan,
    printed_progress,
    resume_evidence,
    scheduler_output,
    submissions,
)
from ..record.printed_line import Found
from ..record.run_folder import RunFolder

Json = Dict[str, Any]

_NEWEST = 6  # values of series that are told
_SILENT = 15.0  # seconds; a job gives a sign of life every two


def job_reports(
    run: RunFolder, alive: Optional[bool], run_plan: Optional[plan.Plan]
) -> List[Tuple[Json, Found]]:
    """Each job with the metrics its log ended with, oldest first."""
    pattern = run_plan.progress if run_plan else ""
    told = []  # type: List[Tuple[Json, Found]]
    before = printed_progress.StepSpan(None, None, None, {})
    holder = run.holder()
    counted_from = printed_progress.first_epoch(run.log(1), pattern)
    sent = [line for line in submissions.lines(run) if line.get("exit_code") == 0]
    for number in sorted(set(run.jobs()) | set(range(1, holder + 1))):
        span = printed_progress.span(run.log(number), pattern, counted_from=counted_from)
        job = _job(run, number, alive if number == holder else False)
        if run_plan is not None:
            job.update(_beginning(run, number, run_plan))
            step = resume_evidence.judged(run, number, run_plan).step
            span = span if step is None else span._replace(first_step=int(step))
        job["submitted"] = submitted_before(sent, job["begun"])
        job.update(first_step=span.first_step, last_step=span.last_step, epoch=span.epoch)
        every = span.every or before.every or 1
        job["steps_redone"] = steps_redone(before.last_step, span.first_step, every)
        before = span
        told.append((job, span.metrics))
    return told


def submitted_before(sent: List[Json], begun: Optional[float]) -> Optional[float]:
    """When the submission was made that a job is of: the newest before it began."""
    times = [line["time"] for line in sent if field_types.numbers([line.get("time")])]
    return max((one for one in times if begun is not None and one <= begun), default=None)


def _job(run: RunFolder, number: int, alive: Optional[bool]) -> Json:
    begun, ended = jobs.read_begun(run, number), jobs.read_ended(run, number)
    told = {"job": number, "holder_alive": alive}  # type: Json
    told["heartbeat"] = time_written(run.heartbeat(number))
    for name in ("id", "host", "pid", "begun", "resumed_from"):
        told[name] = getattr(begun, name, None)
    for name in ("ended", "how", "reason", "exit_code", "signal"):
        told[name] = getattr(ended, name, None)
    told["phase"] = phases.now(run, number)
    told["used"] = getattr(ended, "used", None)
    if ended is None:
        told["how"] = chain_rule.LOST if alive is False else chain_rule.RUNNING
    if ended is None:
        memory = ended_for_memory(run, number, alive)
    else:
        memory = jobs.killed_for_memory(run, ended)
    if memory:
        told.update(how=chain_rule.OUT_OF_MEMORY, reason=memory)
    return told


def ended_for_memory(run: RunFolder, number: int, alive: Optional[bool]) -> str:
    """What its scheduler said when it ended the job, and its agent, for its memory; else "".

    A job that was queued again adds to the same file: one that gives signs of life is not over.
    """
    begun = jobs.read_begun(run, number)
    if alive or begun is None or jobs.read_ended(run, number) is not None:
        return ""
    heard = time_written(run.heartbeat(number)) or 0.0
    if alive is None and time.time() - heard < _SILENT:
        return ""
    return scheduler_output.memory_line(run, begun.id)


def _beginning(run: RunFolder, number: int, run_plan: plan.Plan) -> Json:
    """Whether the job went on from a checkpoint: as its program was told, and as it shows."""
    begun = jobs.read_begun(run, number)
    if begun is None or begun.checkpoint_seen is None:
        return {}
    judged = resume_evidence.judged(run, number, run_plan)
    told = {"checkpoint_found": begun.checkpoint_seen["path"], "started_over": ""}
    if judged.state == chain_rule.STARTED_OVER:
        told.update(started_over=judged.why, resumed_from="")
    if judged.state == resume_evidence.UNKNOWN and judged.why:
        told["beginning_not_known"] = judged.why
    if judged.state == resume_evidence.CONTINUED:
        told["resumed_from"] = told["checkpoint_found"]
    return told


def steps_redone(last_before: Optional[int], first: Optional[int], every: int) -> Optional[int]:
    """How many steps a job made again, as far as was printed; None when either is unknown.

    A program that prints every 20th step and first prints step 320 went on from step 300.
    """
    if last_before is None or first is None:
        return None
    return max(0, last_before - max(0, first - every))


def last_metrics(each: List[Found]) -> Found:
    merged = {}  # type: Found
    for found in each:
        merged.update(found)
    return merged


def time_written(path: str) -> Optional[float]:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def series_summary(run: RunFolder) -> Json:
    """Of its series, as the newest job that has any noted it."""
    try:
        return files.read_json(os.path.join(run.path, "series", "summary.json")) or {}
    except ValueError:
        return {}


def newest_values(told: Json) -> Dict[str, Optional[float]]:
    """What a program wrote last that prints nothing of it; what matters most first."""
    found = {}
    for line in told.get("newest") or []:
        try:
            name, _, text = line
            value = float(text)
        except (TypeError, ValueError):
            continue
        found[str(name)] = value if math.isfinite(value) else None
    names = sorted(found, key=lambda name: name != told.get("main"))
    return {name: found[name] for name in names[:_NEWEST]}


def main_curve(told: Json) -> Optional[Json]:
    """The course of the metric that matters most."""
    if not isinstance(told.get("main"), str) or not isinstance(told.get("curve"), list):
        return None
    return {"name": told["main"], "values": told["curve"]}
