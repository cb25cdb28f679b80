"""When a run will be over, from what its folder tells: the facts for `forecast`."""

import os
from typing import List, Optional

from ..files import Json
from . import chain_rule, forecast, jobs, metrics, resume_evidence, submissions
from .plan import Plan
from .run_folder import RunFolder


def outlook(
    run: RunFolder, run_plan: Optional[Plan], lines: List[Json], saved: Optional[Json]
) -> Optional[Json]:
    """The forecast from the last job's `lines` in metrics.jsonl; None when nobody can tell."""
    job = run.holder()
    begun, ended = jobs.read_begun(run, job), jobs.read_ended(run, job)
    if run_plan is None or begun is None or os.path.exists(run.done):
        return None
    start = _start(begun, lines)
    pace = forecast.pace(lines, start, run_plan.command)
    if pace is None:
        return None
    if pace.unit == forecast.STEP:
        start = float(lines[-1].get("from", 0.0))
    terms = terms_of(run, run_plan, begun)._replace(start=start)
    if ended is not None:
        kept = _kept(lines, start, saved) if pace.unit == forecast.EPOCH else pace.done
        pace, terms = forecast.after(pace, terms, kept, ended.ended)
    progressed = jobs.progressed(begun.checkpoint_seen, saved)
    result = forecast.forecast(pace, terms, progressed)
    again = resume_evidence.begins_again(run, run_plan)
    if again.why and again.certain:
        result = forecast.in_one_job(result, pace, terms, again.why)
    submitted = submissions.jobs_there(run)
    shown = resume_evidence.seen_to_continue(run, run_plan)
    hindered = chain_rule.hindrance(run_plan, lines, submitted, shown)
    grows = 0 if hindered else chain_rule.limit(run_plan, lines, shown)
    return dict(result._asdict(), jobs_there=submitted, grows_to=grows)


def saving(run: RunFolder, run_plan: Optional[Plan], lines: List[Json]) -> Optional[Json]:
    """How the last job saved, for a run of the same program that comes after; None: nobody saw."""
    begun, ended = jobs.read_begun(run, run.holder()), jobs.read_ended(run, run.holder())
    pace = forecast.pace(lines, 0.0, []) if lines else None
    if run_plan is None or begun is None:
        return None
    fruitless = ended is not None and ended.how == chain_rule.TIME_LIMIT and not ended.progressed
    began = (ended.resumption if ended is not None else None) or {}
    over = began.get("why", "") if began.get("state") == chain_rule.STARTED_OVER else ""
    if not fruitless and not over and (pace is None or pace.unit != forecast.EPOCH):
        return None
    again = resume_evidence.begins_again(run, run_plan)
    return {
        "code": run_plan.code,
        "command": run_plan.command,
        "resume": run_plan.resume,
        "over": over,
        "begins_again": again.why if again.certain else "",
        "starting": max(0.0, pace.began - begun.begun) if pace else 0.0,
        "every": pace.save_every if pace else None,
        "epoch": pace.seconds if pace and pace.unit == forecast.EPOCH else None,
        "unsaved": run_plan.walltime - run_plan.grace if fruitless else None,
    }


def terms_of(run: RunFolder, run_plan: Plan, begun: jobs.Begun) -> forecast.Terms:
    """What the chain gives to a job that begins as `begun` says."""
    # What a job spends before its agent begins, the next one will spend, too.
    until = begun.until or begun.begun + run_plan.walltime - run_plan.grace
    longest = run_plan.request.longest
    return forecast.Terms(
        job=begun.job,
        begun=begun.begun,
        start=begun.epoch or 0.0,
        seconds=until - begun.begun,
        between=_between(run, begun.job),
        grace=run_plan.grace,
        queue=longest.queue,
        longest=longest.walltime,
    )


def _start(begun: jobs.Begun, lines: List[Json]) -> float:
    if begun.epoch is not None:
        return begun.epoch
    told = metrics.watched(lines)
    return float(told[-1].get("first_epoch") or 0) if told else 0.0


def _kept(lines: List[Json], start: float, saved: Optional[Json]) -> float:
    return start if saved is None else metrics.epoch_at(lines, saved["mtime_ns"] / 1e9, start)


def _between(run: RunFolder, job: int) -> float:
    """Seconds from the end of one job to the beginning of the next: the median so far."""
    waits: List[float] = []
    for number in range(1, job):
        ended, following = jobs.read_ended(run, number), jobs.read_begun(run, number + 1)
        if ended is not None and following is not None:
            waits.append(max(0.0, following.begun - ended.ended))
    return sorted(waits)[len(waits) // 2] if waits else 0.0
