"""What is kept of trials that are not among the best, so that thousands do not fill a quota."""

import os
from typing import List, Set

from .. import files, partial_folder
from ..checkpoints import newest_checkpoint, order, save_units
from ..record import jobs, lease, plan
from ..record.events import say
from ..record.run_folder import RunFolder
from . import study as studies
from .study import BLOCK, FINISHED, Settings, Study, Trial
from .trials import THINNED, Trials

ALL, CHECKPOINT, NOTHING = "all", "checkpoint", "nothing"


def thin(study: Study, settings: Settings, trials: Trials) -> int:
    """Remove what need not be kept of trials that are gathered: of how many."""
    if settings.keep_others == ALL:
        return 0
    best, count = _best(settings, trials.ended), 0
    for name in sorted(trials.gathered):
        folder = os.path.join(study.trials, name)
        if os.path.exists(os.path.join(folder, THINNED)):
            continue
        first = int(name) * BLOCK
        for number in range(max(1, first), first + BLOCK):
            if number not in best:
                _thin_run(study.run(number), settings.keep_others)
                count += 1
        # Who is among the best now may not be so later, and is looked at then no more.
        studies.publish_text(os.path.join(folder, THINNED), "")
    return count


def _best(settings: Settings, ended: List[Trial]) -> List[int]:
    def worth(trial: Trial) -> float:
        value = (trial.result or {}).get("value")
        return -float(value) * settings.better if isinstance(value, (int, float)) else float("inf")

    finished = [one for one in ended if (one.result or {}).get("state") == FINISHED]
    return [one.number for one in sorted(finished, key=worth)[: settings.keep_best]]


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
    for folder, _, names in os.walk(os.path.join(run.path, "kept")):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.realpath(path) not in kept:
                files.remove_if_there(path)


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
