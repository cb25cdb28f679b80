"""Zero-code watching, switched on: our own start-up file comes first on the program's Python path.

The rest is in `rabaska.training.watching`, which the program's Python loads by itself.
"""

import os
import re
import shutil
from typing import Dict, List

from .. import files, itself
from ..record import metrics
from ..record.plan import Plan
from ..record.runfolder import RunFolder
from ..saves import saved
from . import launch

FIRST = os.path.join("rabaska", "training", "watching", "first")
SWITCH = "RABASKA_WATCH"

_DEAF = "IES"  # python's options that make it pass over the path, or our file on it
_LAST_OPTION = "cmWX"  # what follows in the same word is no option
_LEFT = re.compile(r".*\.\d+-\d+" + re.escape(files.PARTIAL))


def environment(given: Dict[str, str], run: RunFolder, wanted: Plan) -> Dict[str, str]:
    """`given`, the whole environment of a program, with what has it watched."""
    told = dict(given)
    if not wanted.watch or told.get(SWITCH) == "0":
        told[SWITCH] = "0"
        return told
    first = os.path.join(itself.own_path(), FIRST)
    told["PYTHONPATH"] = os.pathsep.join(filter(None, [first, told.get("PYTHONPATH", "")]))
    told["RABASKA_METRICS"] = run.metrics
    told["RABASKA_SAVED"] = os.path.join(run.place(int(told["RABASKA_JOB"])), saved.NAME)
    told[SWITCH] = "1"
    return told


def note_if_deaf(words: List[str], run: RunFolder, job: int, now: float) -> None:
    """Tell that a program cannot be watched, where its command shows it."""
    option = deaf(words)
    if not option:
        return
    try:
        metrics.append(run, job, time=round(now, 3), off="python {}".format(option))
    except OSError:
        pass  # nothing depends on it


def deaf(words: List[str]) -> str:
    """The option by which a Python among `words` takes no advice; "" when there is none."""
    for place, word in enumerate(words):
        if not launch.is_python(word):
            continue
        for option in words[place + 1 :]:
            if not option.startswith("-") or option.startswith("--"):
                break
            letters = re.split("[{}]".format(_LAST_OPTION), option[1:])[0]
            if any(letter in _DEAF for letter in letters):
                return option
            if len(letters) < len(option) - 1:
                break
    return ""


def clear(carried: str) -> None:
    """Remove what a program left that was killed while it saved."""
    for parent, folders, _ in os.walk(carried):
        for name in [name for name in folders if _LEFT.fullmatch(name)]:
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
            folders.remove(name)
