"""`search create | work | report | stop | more`: what a search is told, and what it answers."""

import argparse
import json
import os
import re
import sys
import tarfile
import time
import uuid
from typing import Any, BinaryIO, Dict, List

from .. import files, partial_folder
from ..login import status_query
from ..login.create_run import TAKEN, _unpack
from ..record import jobs, submissions
from ..record.run_folder import RunFolder
from . import choose, repeats, room
from . import study as studies
from .study import Settings, Study, Trial
from .trials import Trials

RUNNING, WAITING = "running", "interrupted"


def main(argv: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="search")
    parser.add_argument(
        "what", choices=["create", "work", "report", "stop", "more", "go-on", "sample"]
    )
    parser.add_argument("study")
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--mark", type=_mark)
    parser.add_argument("--curves", action="store_true")
    parser.add_argument("--queue", help="the scheduler's command that tells of jobs, as JSON")
    options = parser.parse_args(argv)
    study = Study(os.path.abspath(options.study))
    if options.what == "work":
        from . import element

        return element.main(options.study, options.slots)
    if options.what == "sample":
        from . import sampler

        return sampler.main(options.study)
    if options.what == "create":
        return create(study, sys.stdin.buffer)
    if not os.path.exists(study.settings):
        sys.stderr.write("there is no search in {}\n".format(study.path))
        return 1
    if options.what == "stop":
        files.write_whole(study.stop, "")
    if options.what == "more":
        studies.add_trials(study, options.trials, time.time(), options.mark or uuid.uuid4().hex)
    if options.what in ("more", "go-on"):
        files.remove_if_there(study.stop)
    told = report(study, curves=options.curves)
    if options.queue:
        told["queue"] = status_query.ask_queue(json.loads(options.queue), told["jobs"])
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


def _mark(text: str) -> str:
    if not re.match(r"[0-9a-z]+\Z", text):
        raise argparse.ArgumentTypeError("no mark")
    return text


def create(study: Study, tar: BinaryIO) -> int:
    """Make the folder of a search, complete or not at all."""
    parent = os.path.dirname(study.path)
    os.makedirs(parent, exist_ok=True)
    partial_folder.sweep(parent)
    new = partial_folder.begin(parent, study.name)
    try:
        _unpack(tar, new.path)
        settings = _bytes(os.path.join(new.path, "study.json"))
    except (OSError, tarfile.TarError) as problem:
        partial_folder.abandon(new)
        sys.stderr.write("{}\n".format(problem))
        return 1
    made = partial_folder.finish(new, study.path) or _bytes(study.settings) == settings
    return 0 if made else TAKEN


def _bytes(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()


def report(study: Study, *, curves: bool = False) -> files.Json:
    """All that a laptop shows of a search."""
    settings = studies.load(study)
    trials = Trials(study)
    trials.refresh()
    return {
        "name": study.name,
        "path": study.path,
        "total": _total(study, settings, trials),
        "stopped": os.path.exists(study.stop),
        "halted": choose.why_halted(trials.ended),
        "over": choose.is_over(study, settings, trials),
        "settings": _told(settings),
        "trials": [_trial(study, one, curves) for one in trials.all],
        "jobs": job_ids(study),
        "now": time.time(),
    }


def _total(study: Study, settings: Settings, trials: Trials) -> int:
    """Trials that there shall be, with the repeats of the best as far as they are known."""
    wanted = studies.total(study, settings)
    if not settings.seeds:
        return wanted
    begun = sum(1 for one in trials.all if one.repeats)
    known = len(repeats.best(settings, trials.ended, settings.repeat_best))
    unknown = max(0, min(settings.repeat_best, wanted) - known) if trials.proposed < wanted else 0
    return (
        wanted + begun + len(repeats.missing(settings, trials.all)) + unknown * len(settings.seeds)
    )


def _told(settings: Settings) -> Dict[str, Any]:
    hidden = ("space", "growth")
    return {name: value for name, value in settings._asdict().items() if name not in hidden}


def _trial(study: Study, trial: Trial, curves: bool) -> Dict[str, Any]:
    result = trial.result or {}
    found = {
        "number": trial.number,
        "values": trial.values,
        "begun": trial.begun,
        "tries": trial.tries,
        "repeats": trial.repeats,
        "state": result.get("state") or _state(study, trial),
        "value": result.get("value"),
        "why": result.get("why") or _why_open(study, trial),
        "names": result.get("names", []),
        "told": result.get("told", {}),
        "seconds": result.get("seconds"),
        "jobs": result.get("jobs"),
        "reports": result.get("reports", len(trial.reports)),
        "ended": result.get("ended"),
        "run": studies.run_name(study.name, trial.number),
    }
    if curves:
        found["curve"] = result.get("curve") or [
            [place + 1, value] for place, value in enumerate(trial.reports)
        ]
    return found


def _why_open(study: Study, trial: Trial) -> str:
    """What keeps a trial from its end, where that is known: a full disk."""
    if trial.result is not None:
        return ""
    last = room.last_end(study.run(trial.number))
    return last.reason or last.how if last is not None and room.is_for_space(last) else ""


def _state(study: Study, trial: Trial) -> str:
    """Of a trial that has no result, as far as it can be told from here."""
    alive = studies.is_alive(trial.owner)
    if trial.left or alive is False:
        return WAITING
    if alive:
        return RUNNING
    run = study.run(trial.number)
    holder = run.holder()
    return WAITING if holder and jobs.read_ended(run, holder) is not None else RUNNING


def job_ids(study: Study) -> List[str]:
    """What schedulers called the jobs of its workers."""
    found = []
    for folder in study.submissions():
        for one in submissions.submissions(RunFolder(folder)):
            said = str(one.get("said") or "") if one.get("exit_code") == 0 else ""
            # The line that holds the id: sites print numbers of their own before it.
            for line in list(submissions.JOB_ID.finditer(said))[-1:]:
                matched = re.search(r"\d[\w.\[\]-]*", line.group())
                found += [matched.group()] if matched else []
    return found
