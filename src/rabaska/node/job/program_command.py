"""The program's command: placeholders filled in, and the environment it is given."""

import os
import re
from typing import Dict, List, NamedTuple, Optional

from .. import own_program
from ..command_words import CHECKPOINT, PLACEHOLDER, placeholders


class UnknownPlaceholder(Exception):
    """A word of the command holds a placeholder that means nothing."""


class Places(NamedTuple):
    """Where one job's program finds and leaves things."""

    data: Dict[str, str]  # dataset name → path, in the order of the plan
    output: str
    checkpoints: str
    checkpoint: Optional[str] = None


def words_for(command: List[str], resume: List[str], places: Places) -> List[str]:
    """The words to execute: `resume` is added, or `{checkpoint}` taken out, as things stand."""
    values = _values(places)
    if places.checkpoint is None:
        kept = _without_checkpoint(command)
    else:
        kept = command + resume
    return [_filled(word, values) for word in kept]


def _values(places: Places) -> Dict[str, str]:
    values = {"data." + name: path for name, path in places.data.items()}
    for path in list(places.data.values())[:1]:
        values["data"] = path
    values["output"] = places.output
    values["checkpoints"] = places.checkpoints
    if places.checkpoint is not None:
        values[CHECKPOINT] = places.checkpoint
    return values


def _without_checkpoint(command: List[str]) -> List[str]:
    """`--resume {checkpoint}` and `--resume={checkpoint}` vanish, option and all."""
    kept = []  # type: List[str]
    for word in command:
        if CHECKPOINT not in placeholders([word]):
            kept.append(word)
        elif len(kept) > 1 and not word.startswith("-") and _is_option(kept[-1]):
            kept.pop()
    return kept


def _is_option(word: str) -> bool:
    return word.startswith("-") and word.strip("-") != "" and "=" not in word.split("{")[0]


def _filled(word: str, values: Dict[str, str]) -> str:
    def piece(found: "re.Match[str]") -> str:
        name = found.group(1)
        if name is None:
            return found.group(0)[0]
        if name not in values:
            raise UnknownPlaceholder(
                "unknown placeholder {{{}}} in {!r}; known here: {}".format(
                    name, word, " ".join("{%s}" % known for known in sorted(values))
                )
            )
        return values[name]

    return PLACEHOLDER.sub(piece, word)


def environment(places: Places, given: Dict[str, str], extra: Dict[str, str]) -> Dict[str, str]:
    """`given` with the variables for the program; `extra` are variables of this run and job."""
    variables = dict(given)
    variables.update(extra)
    variables["PYTHONUNBUFFERED"] = "1"
    variables["PYTHONPATH"] = os.pathsep.join(
        filter(None, [variables.get("PYTHONPATH", ""), own_program.own_path()])
    )
    for name, path in reversed(list(places.data.items())):
        variables["RABASKA_DATA_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper()] = path
        variables["RABASKA_DATA"] = path
    variables["RABASKA_OUTPUT"] = places.output
    variables["RABASKA_CHECKPOINTS"] = places.checkpoints
    variables["RABASKA_RESUME"] = "0" if places.checkpoint is None else "1"
    variables.pop("RABASKA_CHECKPOINT", None)
    if places.checkpoint is not None:
        variables["RABASKA_CHECKPOINT"] = places.checkpoint
    return variables
