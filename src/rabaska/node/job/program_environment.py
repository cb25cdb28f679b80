"""The program's environment: a `python` where only `python3` exists, and our start-up file."""

import os
import re
import shlex
import shutil
import sys
from typing import Dict, List, Mapping

from .. import files, own_program
from ..checkpoints import save_slots
from ..command_words import is_python
from ..record import metrics
from ..record.plan import Plan
from ..record.run_folder import RunFolder

_NAMES = ("python", "python3")
_WORD = """\
#!/bin/sh
exec {} "$@"
"""


def missing(environment: Mapping[str, str]) -> Dict[str, str]:
    """What stands in for each name that PATH does not have; nothing where it has both."""
    path = environment.get("PATH", os.defpath)
    there = [name for name in _NAMES if shutil.which(name, path=path)]
    # By its name: other nodes may have it elsewhere.
    stand_in = there[0] if there else sys.executable
    return {name: stand_in for name in _NAMES if name not in there}


def provide(environment: Dict[str, str], run: RunFolder) -> Dict[str, str]:
    """`environment` with a PATH that has both names."""
    lacking = missing(environment)
    if not lacking:
        return environment
    folder = os.path.join(run.path, "bin")
    try:
        os.makedirs(folder, exist_ok=True)
        for name, stand_in in lacking.items():
            files.write_program(os.path.join(folder, name), _WORD.format(shlex.quote(stand_in)))
    except OSError:
        return environment  # a full disk; then the command itself says what is missing
    path = environment.get("PATH", os.defpath)
    return dict(environment, PATH=os.pathsep.join([path, folder]))


def stand_in_note(words: List[str], environment: Mapping[str, str]) -> str:
    """What to say where a command uses a name that `environment` lacks; else nothing."""
    for name, stand_in in sorted(missing(environment).items()):
        if name in words:
            where = shutil.which(stand_in, path=environment.get("PATH", os.defpath)) or stand_in
            return "there is no `{}` here, so `{}` runs {}".format(name, name, where)
    return ""


FIRST = os.path.join("rabaska", "training", "watching", "first")
SWITCH = "RABASKA_WATCH"

_DEAF = "IES"  # python's options that make it pass over the path, or our file on it
_LAST_OPTION = "cmWX"  # what follows in the same word is no option
_LEFT = re.compile(r".*\.\d+-\d+" + re.escape(files.PARTIAL))


def environment(given: Dict[str, str], run: RunFolder, run_plan: Plan) -> Dict[str, str]:
    """`given`, the whole environment of a program, with what has it watched."""
    variables = dict(given)
    if not run_plan.watch or variables.get(SWITCH) == "0":
        variables[SWITCH] = "0"
        return variables
    first = os.path.join(own_program.own_path(), FIRST)
    variables["PYTHONPATH"] = os.pathsep.join(
        filter(None, [first, variables.get("PYTHONPATH", "")])
    )
    variables["RABASKA_METRICS"] = run.metrics
    variables["RABASKA_SAVED"] = os.path.join(
        run.place(int(variables["RABASKA_JOB"])), save_slots.NAME
    )
    variables[SWITCH] = "1"
    return variables


def with_trackers(given: Dict[str, str], run: RunFolder) -> Dict[str, str]:
    """`given` with W&B in its offline mode where an earlier job found no way out of the nodes.

    Its log goes to the output then, where it can be fetched while the program runs.
    """
    variables = dict(given)
    try:
        known = files.read_json(run.nodes) or {}
    except (OSError, ValueError):
        known = {}
    if known.get("internet") is False:
        variables.setdefault("WANDB_MODE", "offline")
    if variables.get("WANDB_MODE") == "offline" and variables.get("RABASKA_OUTPUT"):
        variables.setdefault("WANDB_DIR", variables["RABASKA_OUTPUT"])
    return variables


def note_if_unwatchable(words: List[str], run: RunFolder, job: int, now: float) -> None:
    """Tell that a program cannot be watched, where its command shows it."""
    option = isolating_option(words)
    if not option:
        return
    try:
        metrics.append(run, job, time=round(now, 3), off="python {}".format(option))
    except OSError:
        pass  # nothing depends on it


def isolating_option(words: List[str]) -> str:
    """The option by which a Python among `words` takes no advice; "" when there is none."""
    for place, word in enumerate(words):
        if not is_python(word):
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
