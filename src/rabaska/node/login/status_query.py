"""How runs stand, and what the scheduler says of them, in one answer: what `status` asks for.

`status QUESTION` is asked about the queue in a word of its own, as JSON,

    {"tail": 12, "queue": ["squeue", …], "answers": [0], "history": ["sacct", …, "--jobs={jobs}"]}

and about runs on standard input, a line for each, as they come:

    {"path": …, "ids": …, "mark": …, "have": {"series/job-001.tsv": bytes, …}}

With "have", the report carries as "new" what these files hold more (see `new_numbers`).

It prints the report of each run as a JSON line, again for one that ended while the queue was
asked, then a line with the scheduler's own words:
{"now": …, "queue": {"exit_code", "said", "complained", "asked"}, "history": the same or null},
where "asked" are the jobs by which the queue was asked.

The queue is asked while the folders are read. Its history is asked only about jobs that the
queue no longer mentions and that left no record of their end: databases are slow, or down."""

import json
import os
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional, Set, Tuple

from .. import timed_command
from ..record import chain_rule, plan, submissions
from ..record.run_folder import RunFolder

JsonObject = Dict[str, Any]


def report_untouched(run: RunFolder) -> Optional[JsonObject]:
    """What `report` would say of the run; None when there is more to tell than this."""
    if run.holder() != 0 or run.jobs() or os.listdir(run.logs):
        return None
    if any(os.path.exists(mark) for mark in (run.stop, run.moved, run.incomplete)):
        return None
    try:
        run_plan = plan.load(run)
    except plan.WrongFormat:
        return None
    if run_plan is None:
        return None
    return {
        "run": run_plan.run,
        "id": run_plan.id,
        "path": run.path,
        "about": plan.about(run_plan),
        "walltime": run_plan.walltime,
        "jobs_requested": run_plan.jobs,
        "submissions": list(submissions.lines(run)),
        "done": False,
        "stop": False,
        "moved": "",
        "incomplete": False,
        "command": list(run_plan.command),
        "verdict": dict(chain_rule.verdict([])._asdict()),
        "begins_again": "",
        "jobs": [],
        "starting": None,
        "restarts": [],
        "not_kept": [],
        "data": [],
        "checkpoint": None,
        "metrics": {},
        "curve": None,
        "speed": None,
        "vitals": {},
        "ranks": [],
        "forecast": None,
        "saving": None,
        "extended": None,
        "left_running": 0,
        "not_watched": "",
        "tail": "",
        "problems": [],
    }


Json = Dict[str, Any]

QUEUE_PATIENCE = 30.0  # seconds; squeue gives up by itself when it hears nothing
HISTORY_PATIENCE = 15.0
JUST_MADE = 5.0  # seconds between a run folder and the first sign of its submission
NO_ANSWER = timed_command.NO_ANSWER
JOBS = "{jobs}"  # stands for the jobs, where a queue is asked by their ids


def main(argv: List[str]) -> int:
    asked = json.loads(argv[0])
    wants_jobs = JOBS in asked["queue"]
    queue = None if wants_jobs else _begin(asked["queue"])
    runs, open_runs = _answer_each(asked["tail"])
    if wants_jobs:
        queue = _begin(_about_jobs(asked["queue"], _asked(runs)))
    said = _answer(queue, QUEUE_PATIENCE)
    # The queue took its time, and knows of ends that were not yet recorded when we looked.
    for run in open_runs:
        if mark_of(RunFolder(run["path"])):
            _print_json(_answer_for(run, asked["tail"]))
    said["asked"] = _asked(runs) if wants_jobs else []
    # A queue that is asked by id is told apart from its history by another option of its command.
    open_jobs = said["asked"] or [one for run in open_runs for one in _ids_of(run)]
    answered = said["exit_code"] in asked.get("answers", [0])
    history = _history(asked["history"], open_jobs, said["said"]) if answered else None
    told = {"now": time.time(), "offset": time.localtime().tm_gmtoff}
    _print_json(dict(told, queue=said, history=history))
    sys.stdout.flush()
    if __file__.startswith(sys.path[0]) and sys.path[0].endswith(".pyz"):
        from .. import own_program  # the first time; from then on the compiled copy is asked

        own_program.write_compiled_copy()
    return 0


def ask_queue(words: List[str], jobs: List[str]) -> Json:
    """What the queue says; of these jobs, where it is asked by their ids."""
    wants_jobs = JOBS in words
    said = _answer(_begin(_about_jobs(words, jobs) if wants_jobs else words), QUEUE_PATIENCE)
    said["asked"] = jobs if wants_jobs else []
    return said


def _answer_each(tail: int) -> Tuple[List[Json], List[Json]]:
    """Tell of each run as it is asked for; all of them, and those that are not over."""
    runs, open_runs, allowance = [], [], None  # type: List[Json], List[Json], Any
    for line in sys.stdin.buffer:
        run = json.loads(line.decode("utf-8"))
        told = _answer_for(run, tail)
        if isinstance(run.get("have"), dict):
            from .new_numbers import Allowance, new_numbers

            allowance = allowance or Allowance()
            told["new"] = new_numbers(RunFolder(run["path"]), run["have"], allowance)
        runs.append(run)
        if not told["mark"]:
            open_runs.append(run)
        _print_json(told)
    return runs, open_runs


def _print_json(value: Json) -> None:
    sys.stdout.write(json.dumps(value, sort_keys=True) + "\n")


def _answer_for(run: Json, tail: int) -> Json:
    """The report of a run, or only that it is as it was when the asker marked it."""
    folder = RunFolder(run["path"])
    mark = mark_of(folder)
    if mark and mark == run.get("mark"):
        return {"path": run["path"], "mark": mark}
    submitting = _submitting(folder)  # it may find an answer, and write it down
    told = _report(folder, tail)
    told.update(mark=mark, submitting=submitting)
    return told


def _submitting(run: RunFolder) -> Optional[Json]:
    """What is known of a submission without an answer."""
    try:
        if submissions.is_unanswered(run):
            from .pending_submissions import waiting

            return waiting(run)
        return _about_to_be(run)
    except (OSError, ValueError, TypeError, KeyError):
        pass  # damaged: the full report says how
    return None


def _report(run: RunFolder, tail: int) -> Json:
    """Each way is imported when it is taken: most runs are over, most others wait."""
    try:
        told = report_untouched(run)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        told = None  # damaged or half made: the full report says how
    if told is None:
        from .run_report import report

        told = report(run.path, tail)
    return told


def _about_to_be(run: RunFolder) -> Optional[Json]:
    """A folder that was made a moment ago: its submission is on its way, or came to nothing."""
    if run.holder() or os.path.exists(run.submissions) or not os.path.exists(run.plan):
        return None
    made = os.stat(run.plan).st_mtime
    return {"state": "under way", "time": made} if 0 <= time.time() - made < JUST_MADE else None


def mark_of(run: RunFolder) -> Optional[str]:
    """Changes whenever a run that is over changes; None while a job may be at work.

    Whatever happens to a run that is over begins with a submission or a claim.
    """
    done, ended = _time_of(run.done), _time_of(run.ended(run.holder()))
    if not (done or ended) or (not done and submissions.is_unanswered(run)):
        return None
    carried = _time_of(os.path.join(run.path, "carried"))
    # PBS brings what it said of the end of a job, such as its memory, when the job is over.
    logs = "" if done else _time_of(run.logs)
    told = (_time_of(run.submissions), _time_of(run.stop), _time_of(run.moved))
    return "-".join(told + (done, carried, ended, logs))


def _time_of(path: str) -> str:
    try:
        return "{:x}".format(os.stat(path).st_mtime_ns)
    except OSError:
        return ""


def _begin(words: List[str]) -> "Optional[subprocess.Popen[bytes]]":
    if not words:
        return None
    try:
        return timed_command.begin(words)
    except OSError:
        return None  # the site has no such command, or not for us


def _answer(process: "Optional[subprocess.Popen[bytes]]", patience: float) -> Json:
    if process is None:
        return {"exit_code": 127, "said": "", "complained": "there is no such command"}
    heard = timed_command.answer(process, patience)
    return {
        "exit_code": heard.exit_code,
        "said": heard.output.decode("utf-8", "replace"),
        "complained": heard.errors.decode("utf-8", "replace"),
    }


def _history(words: List[str], jobs: List[str], queue: str) -> Optional[Json]:
    missing = sorted(set(jobs) - _mentioned(queue))
    if not words or not missing:
        return None
    return _answer(_begin(_filled(words, missing)), HISTORY_PATIENCE)


def _filled(words: List[str], jobs: List[str]) -> List[str]:
    """`{jobs}` as a word of its own becomes a word for each job, and inside of one a list."""
    filled = []  # type: List[str]
    for word in words:
        filled += jobs if word == JOBS else [word.replace(JOBS, ",".join(jobs))]
    return filled


def _about_jobs(words: List[str], jobs: List[str]) -> List[str]:
    """The queue's command where it wants jobs."""
    # A queue asked about nothing would tell of everybody's jobs.
    return _filled(words, jobs) if jobs else ["true"]


def _asked(runs: List[Json]) -> List[str]:
    """The jobs of every run that is not finished."""
    unfinished = [run for run in runs if not os.path.exists(RunFolder(run["path"]).done)]
    return [one for run in unfinished for one in _ids_of(run)]


def _ids_of(run: Json) -> List[str]:
    return (run.get("ids") or "").split()


def _mentioned(queue: str) -> Set[str]:
    """Every word of what the queue said, and the job each element of an array belongs to."""
    import re

    words = set(re.findall(r"[\w.]+", queue))
    return words | {word.partition("_")[0] for word in words}
