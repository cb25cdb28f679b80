"""saved.jsonl: what a watched program saved, and in which order, one JSON line for each save.

It lies beside what the program writes, and moves on with it from job to job. The program's own
process appends to it (`rabaska.training.watching`): which file, after how many steps of which job,
and the time that the file had then. Nothing depends on it: without it, names and times decide.
"""

import json
import os
from typing import List, NamedTuple, Optional, Tuple

from .. import files

NAME = "saved.jsonl"
TAIL = 256 * 1024  # bytes: more than a thousand saves


class LoggedSave(NamedTuple):
    path: str  # relative to what is carried: output/… or checkpoints/…
    mtime_ns: int
    moment: Tuple[int, int]  # job and steps: the same for files saved together


def read(carried: str) -> List[LoggedSave]:
    """The last saves, oldest first."""
    try:
        with open(os.path.join(carried, NAME), "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - TAIL))
            lines = stream.read(TAIL).split(b"\n")
    except OSError:
        return []
    return [save for save in map(_save, lines) if save is not None]


def beside_code(saves: List[LoggedSave]) -> List[LoggedSave]:
    """Those of files beside the code, which are kept in the output: as they are called there."""
    above = "output/"
    return [
        save._replace(path=save.path[len(above) :]) for save in saves if save.path.startswith(above)
    ]


def _save(line: bytes) -> Optional[LoggedSave]:
    try:
        told = json.loads(line.decode("utf-8"))
        moment = int(told["job"]), int(told["steps"])
        return LoggedSave(files.native(told["path"]), int(told["mtime_ns"]), moment)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # cut at the beginning of what was read, or half written
