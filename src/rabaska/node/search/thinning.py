"""What is kept of trials that are not among the best, so that thousands do not fill a quota."""

import json
import os
from typing import List, Optional, Set

from .. import files, partial_folder
from ..checkpoints import newest_checkpoint, order, save_units
from ..record import jobs, lease, plan
from ..record.events import say
from ..record.run_folder import RunFolder
from . import repeats
from .study import BLOCK, Settings, Study
from .trials import THINNED, Trials

ALL, CHECKPOINT, NOTHING = "all", "checkpoint", "nothing"
_KEPT = ("run.json", "trial.json", "DONE", "STOP", "output")


def thin(study: Study, settings: Settings, trials: Trials) -> int:
    """Remove what need not be kept of trials that are gathered: of how many.

    The file `thinned` of a hundred lists those that were among the best then. Who is not so any
    more is thinned later.
    """
    if settings.keep_others == ALL:
        return 0
    best = {one.number for one in repeats.best(settings, trials.ended, settings.keep_best)}
    count = 0
    for name in sorted(trials.gathered):
        path = os.path.join(study.trials, name, THINNED)
        complete, first = _listed(path), int(name) * BLOCK
        if complete is None:
            complete = set(range(max(1, first), first + BLOCK))
        spared = {one for one in complete if one in best or _repeated(trials, one) in best}
        for number in sorted(complete - spared):
            _thin_run(study.run(number), settings.keep_others)
            count += 1
        if spared != complete or not os.path.exists(path):
            files.write_whole(path, json.dumps(sorted(spared)) + "\n")
    return count


def _repeated(trials: Trials, number: int) -> int:
    known = trials.by_number.get(number)
    return known.repeats if known is not None else 0


def _listed(path: str) -> Optional[Set[int]]:
    """The trials that are complete still; None where nobody looked yet."""
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.loads(stream.read() or "[]")
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return None
    return {one for one in found if isinstance(one, int)} if isinstance(found, list) else None


def _thin_run(run: RunFolder, keep: str) -> None:
    if lease.holder_alive(run, run.holder()) is not False:
        return  # somebody resumed it by itself
    if keep == NOTHING:
        partial_folder.remove_tree(run.path)
        return
    try:
        kept = _newest(run)
    except (OSError, plan.WrongFormat, ValueError, KeyError, TypeError) as problem:
        say("all of {} is kept: {}".format(run.name, problem))
        return
    for folder, _, names in os.walk(run.path):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.realpath(path) in kept or _is_kept(os.path.relpath(path, run.path)):
                continue
            files.remove_if_there(path)


def _is_kept(path: str) -> bool:
    """What tells what a run was and how it went: its plan, values, log, curves and end."""
    folder, name = os.path.split(path)
    if folder.startswith("jobs/"):
        return name in ("begun.json", "ended.json")
    if folder == "logs":
        return name.startswith("job-") and name.endswith(".log")
    return folder in ("series", "carried") or (not folder and name in _KEPT)


def _newest(run: RunFolder) -> Set[str]:
    """All files of the newest valid checkpoint: it may be a folder, or several files."""
    made = plan.load(run)
    patterns, place = made.patterns if made else [], run.place(run.holder())
    problems: List[OSError] = []
    found = list(newest_checkpoint.everything(place, patterns, problems.append))
    if problems:
        raise problems[0]
    chosen = jobs.newest(run, run.holder(), patterns)
    if chosen is None:
        return set()
    unit = save_units.unit_of(order.Candidate(**chosen), found, place, save_units.known(place))
    return {os.path.realpath(os.path.join(place, path)) for path in unit.files}
