"""All that is known of runs, one JSON line each: what `rabaska status` reads.

`report [--tail N] RUNFOLDER…` or `report [--tail N] --all STORE`

Nothing is changed and only small pieces of files are read, so that one call can answer for
hundreds of runs. A folder that is half made or damaged gives a line with `problems`.
"""

import argparse
import os
import sys
from typing import Any, Callable, List, Optional

from .. import files
from ..checkpoints import checkpoint_names, validity
from ..record import (
    chain_rule,
    events,
    field_types,
    jobs,
    lease,
    metrics,
    phases,
    plan,
    resume_evidence,
    submissions,
)
from ..record.run_folder import RunFolder
from ..record.run_forecast import outlook, saving
from ..vitals.recent import recent
from .job_reports import (
    Json,
    ended_for_memory,
    job_reports,
    last_metrics,
    main_curve,
    newest_values,
    series_summary,
    time_written,
)

TAIL_LINES = 20
TAIL_BYTES = 16 * 1024


# What reading a damaged record can raise; anything else is a bug and keeps its traceback.
DAMAGE = (OSError, ValueError, TypeError, KeyError, AttributeError)


def main(argv: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="report")
    parser.add_argument("--tail", type=int, default=TAIL_LINES, metavar="N")
    parser.add_argument("--all", metavar="STORE")
    parser.add_argument("runs", nargs="*", metavar="RUNFOLDER")
    options = parser.parse_args(argv)
    for path in options.runs + (runs_of(options.all) if options.all else []):
        sys.stdout.write(files.to_json(report(path, options.tail)) + "\n")
        sys.stdout.flush()
    return 0


def runs_of(store: str) -> List[str]:
    folder = os.path.join(store, "runs")
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    paths = [os.path.join(folder, name) for name in names if not name.endswith(files.PARTIAL)]
    return [path for path in paths if os.path.isdir(path)]


def report(path: str, tail: int = TAIL_LINES) -> Json:
    """Everything about one run that can be read in a moment."""
    run = RunFolder(os.path.abspath(path))
    problems = []  # type: List[str]
    run_plan = _attempt(problems, "run.json", None, plan.load, run)
    if run_plan is None and not problems:
        there = os.path.isdir(run.path)
        problems.append("it has no run.json" if there else "there is no such folder")
    patterns = run_plan.patterns if run_plan else []
    alive = _attempt(problems, "the holder", None, _holder_alive, run)
    saved = _attempt(problems, "checkpoints", None, _saved, run, patterns)
    each = _attempt(problems, "jobs", [], job_reports, run, alive, run_plan)
    told = "{} is damaged and ignored"
    problems += [told.format(name) for name in _attempt(problems, "jobs", [], jobs.damaged, run)]
    lines = _attempt(problems, "metrics.jsonl", [], _metrics_of_last, run)
    problems += _attempt(problems, "jobs", [], _did_nothing, run, lines)
    summary = _attempt(problems, "series", {}, series_summary, run)
    return {
        "run": run_plan.run if run_plan else run.name,
        "id": run_plan.id if run_plan else None,
        "path": run.path,
        "about": plan.about(run_plan) if run_plan else {},
        "walltime": run_plan.walltime if run_plan else None,
        "jobs_requested": run_plan.jobs if run_plan else None,
        "submissions": _attempt(problems, "submissions.jsonl", [], _submissions, run),
        "done": os.path.exists(run.done),
        "stop": os.path.exists(run.stop),
        "moved": _attempt(problems, "MOVED", "", _moved, run),
        "incomplete": os.path.exists(run.incomplete),
        "command": list(run_plan.command) if run_plan else [],
        "verdict": _attempt(problems, "the chain", None, _verdict, run, run_plan, alive, saved),
        "begins_again": _attempt(problems, "the chain", "", _begins_again, run, run_plan),
        "jobs": [job for job, _ in each],
        "starting": _attempt(problems, "logs", None, phases.starting, run),
        "restarts": _attempt(problems, "logs", [], phases.restarts, run),
        "data": _attempt(problems, "events.jsonl", [], _staged, run),
        "checkpoint": _shown(saved) if isinstance(saved, dict) else None,
        "metrics": last_metrics([found for _, found in each]) or newest_values(summary),
        "curve": main_curve(summary),
        "speed": _attempt(problems, "metrics.jsonl", None, metrics.speed, lines),
        "vitals": _attempt(problems, "vitals", {}, _vitals, run, lines),
        "ranks": _attempt(problems, "ranks.jsonl", [], _ranks, run),
        "forecast": _attempt(problems, "the forecast", None, outlook, run, run_plan, lines, saved),
        "saving": _attempt(problems, "the last job", None, saving, run, run_plan, lines),
        "extended": _attempt(problems, "events.jsonl", None, _extended, run),
        "not_kept": _attempt(problems, "jobs", [], _not_kept, run),
        "left_running": _attempt(problems, "events.jsonl", 0, _left_running, run),
        "not_watched": metrics.off(lines),
        "tail": _attempt(problems, "logs", "", last_lines, newest_log(run), tail),
        "problems": problems,
    }


def _attempt(
    problems: List[str], what: str, otherwise: Any, read: Callable[..., Any], *given: Any
) -> Any:
    try:
        return read(*given)
    except plan.WrongFormat as problem:
        problems.append(str(problem))
    except DAMAGE as problem:
        problems.append("{} cannot be read: {}: {}".format(what, type(problem).__name__, problem))
    return otherwise


def _metrics_of_last(run: RunFolder) -> List[Json]:
    return metrics.tail(run, run.holder())


def _vitals(run: RunFolder, lines: List[Json]) -> Json:
    """Of the last job, while its program trained."""
    own = metrics.watched(lines)
    if not own:
        return dict(recent(run.path, run.holder()))
    return dict(recent(run.path, run.holder(), own[-1]["began"], own[-1]["time"]))


def _ranks(run: RunFolder) -> List[Json]:
    return metrics.ranks(run, run.holder())


def _staged(run: RunFolder) -> List[Json]:
    """Where the last job that got so far put its datasets."""
    placed: List[Json] = []
    for event in events.read(run):
        placed = event.get("placed") or placed
    shape = field_types.PLACED
    return [
        one
        for one in placed
        if isinstance(one, dict) and not field_types.misfit(one, shape, list(shape))
    ]


def _extended(run: RunFolder) -> Optional[Json]:
    """How many jobs the run added to its chain by itself, and why it did so last."""
    added = [event for event in events.read(run) if event["event"] == "extended"]
    if not added:
        return None
    return {"jobs": sum(each["jobs"] for each in added), "why": added[-1]["why"]}


def _did_nothing(run: RunFolder, lines: List[Json]) -> List[str]:
    """What to say of a program that ended at once, and well: "no GPU found. Exiting."."""
    ended = [jobs.read_ended(run, number) for number in run.jobs()]
    last = ended[-1] if ended else None
    if last is None or last.how != chain_rule.FINISHED or metrics.watched(lines):
        return []
    if any(job is None or job.progressed or job.checkpoint or job.tracks for job in ended):
        return []
    if any(names for _, _, names in os.walk(run.carried(last.job))):
        return []
    log = last_lines(run.log(last.job), TAIL_LINES).splitlines()
    printed = [line.strip() for line in log if line.strip() and not line.startswith("rabaska: ")]
    told = "its last line was: " + printed[-1][:200] if printed else "it printed nothing"
    return ["finished without a step, a checkpoint or a file; " + told]


def _left_running(run: RunFolder) -> int:
    """How many processes the program of a run that is finished had left running."""
    ended = jobs.read_ended(run, run.holder())
    if ended is None or ended.how != chain_rule.FINISHED:
        return 0
    told = [event for event in events.read(run) if event["event"] == "ended stragglers"]
    return sum(each.get("count", 0) for each in told if each.get("job") == ended.job)


def _not_kept(run: RunFolder) -> List[str]:
    return jobs.not_kept(run, run.output(run.holder()))


def _moved(run: RunFolder) -> str:
    """Under which name, and where, the run went on; "" where it did not."""
    told = files.read_json(run.moved) or {}
    return "{} on {}".format(told["run"], told["cluster"]) if told else ""


def _submissions(run: RunFolder) -> List[Json]:
    return list(submissions.lines(run))


def _holder_alive(run: RunFolder) -> Optional[bool]:
    return lease.holder_alive(run, run.holder())


def _verdict(
    run: RunFolder, run_plan: Optional[plan.Plan], alive: Optional[bool], saved: Optional[Json]
) -> Json:
    # A holder on another machine counts as running: only the scheduler, or a whole lease of
    # watching, could say otherwise.
    over = alive is False or bool(ended_for_memory(run, run.holder(), alive))
    decided = resume_evidence.verdict(run, run_plan, lambda: saved, last_is_over=over)
    return dict(decided._asdict())


def _begins_again(run: RunFolder, run_plan: Optional[plan.Plan]) -> str:
    """What `resume` would do, of a run that has begun; "" where it goes on."""
    again = chain_rule.GOES_ON if run_plan is None else resume_evidence.begins_again(run, run_plan)
    return str(again) if again.why and run.holder() else ""


def _saved(run: RunFolder, patterns: List[str]) -> Optional[Json]:
    """The newest checkpoint: as the last job recorded it, else as a quick look finds it."""
    holder = run.holder()
    ended = jobs.read_ended(run, holder)
    folder = run.carried(holder)
    if ended is not None and ended.checkpoint is not None and _is_there(folder, ended.checkpoint):
        return ended.checkpoint
    return jobs.newest(run, holder, patterns)


def _is_there(folder: str, saved: Json) -> bool:
    """Whether a checkpoint is still as it was recorded: it may have been emptied or deleted."""
    path = os.path.join(folder, saved["path"])
    try:
        if os.path.isdir(path):
            return validity.check(path) is None
        status = os.stat(path)
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (saved["size"], saved["mtime_ns"])


def _shown(saved: Json) -> Json:
    written = saved.get("mtime_ns")
    seconds = written / 1e9 if isinstance(written, (int, float)) else None
    return {"path": saved.get("path"), "size": saved.get("size"), "written": seconds}


def newest_log(run: RunFolder) -> str:
    """The log of the last job that has one, else what the scheduler caught."""
    try:
        names = os.listdir(run.logs)
    except OSError:
        return ""
    of_jobs = [name for name in names if name.startswith("job-") and name.endswith(".log")]
    chosen = max(of_jobs, key=checkpoint_names.natural, default="")
    # A job that fails before its agent begins says why to the scheduler only.
    of_scheduler = [name for name in names if name.startswith("scheduler-")]
    chosen = chosen or max(
        of_scheduler, key=lambda name: time_written(run.logs + "/" + name) or 0, default=""
    )
    return os.path.join(run.logs, chosen) if chosen else ""


def last_lines(path: str, count: int) -> str:
    """The last `count` lines of a log; of a line redrawn with carriage returns its last state."""
    if not path or count <= 0:
        return ""
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        stream.seek(max(0, size - TAIL_BYTES))
        text = stream.read(TAIL_BYTES).decode("utf-8", "replace")
    lines = [line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.rstrip("\r\n").split("\n")]
    return "\n".join(lines[-count:])
