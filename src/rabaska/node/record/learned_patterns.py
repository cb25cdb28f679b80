"""What a program in fact saves, where the patterns of its run do not fit it.

Patterns are guesses, read from a source or typed. A job after which nothing fits them, though a
checkpoint was written, corrects them for the jobs to come.
"""

import os
import re
from typing import TYPE_CHECKING, List, NamedTuple, Optional

from .. import files
from .run_folder import RunFolder

if TYPE_CHECKING:
    from ..checkpoints.order import Candidate

# What is seldom anything but a checkpoint, whoever wrote it.
_SURELY = ["*.pt", "*.pth", "*.pth.tar", "*.ckpt", "*.safetensors", "*.keras"]
# Text, which is a checkpoint by its name alone.
_AS_TEXT = ["checkpoint.json", "checkpoint*[0-9].json", "ckpt.json", "ckpt*[0-9].json"]
_HARDLY = re.compile(r"best|final|export|pred|embed|feature|cache|dataset|vocab|token", re.I)


class Learned(NamedTuple):
    path: str  # of the checkpoint, relative to what is carried
    size: int  # bytes
    mtime_ns: int
    pattern: str  # that fits it, and those to come


def learned(run: RunFolder) -> List[str]:
    """The patterns that earlier jobs found missing."""
    try:
        value = files.read_json(run.patterns) or {}
    except (OSError, ValueError):
        return []  # the next job finds them again
    found = value.get("patterns")
    named = found if isinstance(found, list) else []
    return [files.native(pattern) for pattern in named if isinstance(pattern, str)]


def learn(run: RunFolder, job: int, known: List[str]) -> Optional[Learned]:
    """The newest checkpoint that `job` wrote and none of the patterns `known` fits, noted.

    What it wrote may be carried by the job after it by now.
    """
    found = _unfitting(run, job, known)
    if found is None:
        return None
    name = re.sub(r"\d+", "*", os.path.basename(found.path).replace("[", "[[]"))
    files.write_json(run.patterns, {"patterns": sorted({name}.union(learned(run)))})
    return Learned(found.path, found.size, found.mtime_ns, name)


def _unfitting(run: RunFolder, job: int, known: List[str]) -> "Optional[Candidate]":
    # Only here: `status` reads plans, and what was learned, and nothing else.
    from ..checkpoints import newest_checkpoint, order, save_slots, validity
    from . import step_tracks

    carried, before = run.carried(run.holder()), step_tracks.recall(run, job).saves
    saves = save_slots.read(carried)
    told = [save.path for save in saves if save.moment[0] == job]
    for wanted in (_SURELY + told, newest_checkpoint.DEFAULT_PATTERNS, _AS_TEXT):
        for one in order.in_order(newest_checkpoint.everything(carried, wanted), saves):
            fresh = before.get(one.path) != [one.size, one.mtime_ns]
            hardly = _HARDLY.search(os.path.basename(one.path)) and one.path not in told
            if newest_checkpoint.matches(one.path, known) or not fresh or hardly:
                continue
            if validity.check(os.path.join(carried, one.path), deep=False) is None:
                return one
    return None
