"""The slots of a run's saves, and the log of what was saved in each."""

import json
import os
from typing import Callable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

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
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None  # cut at the beginning of what was read, or half written


_MOST = 4
_TOGETHER = 10 * 10**9  # nanoseconds in which a file is created and written
_NAMED_SO = {
    "ckpt",
    "checkpoint",
    "chkpt",
    "slot",
    "state",
    "save",
    "saved",
    "snapshot",
    "resume",
    "last",
    "latest",
    "backup",
}


Look = Mapping[str, Sequence[int]]  # path → size in bytes, time of change in nanoseconds


class SaveSlot(NamedTuple):
    path: str
    number: int
    size: int  # bytes
    mtime_ns: int


class Earlier(NamedTuple):
    """What is known of the time before, as far as somebody looked."""

    saves: Sequence[LoggedSave] = ()  # that were watched
    looks: Sequence[Look] = ()  # before programs of earlier jobs started
    changed: Callable[[str], Optional[int]] = lambda path: None  # when the folder of a path was


NOTHING_EARLIER = Earlier()


def in_turn(slots: Sequence[SaveSlot], words: Set[str], earlier: Earlier) -> bool:
    """Whether files that differ in a number only, with these words in their names, are slots."""
    numbers = sorted(slot.number for slot in slots)
    if not 2 <= len(slots) <= _MOST or numbers[0] not in (0, 1):
        return False
    if numbers != list(range(numbers[0], numbers[0] + len(slots))):
        return False
    newest = max(slots, key=lambda slot: slot.mtime_ns)
    if _saved_again(slots, earlier.saves):
        return True
    if any(_written_again(slots, newest, look) for look in earlier.looks):
        return True
    return bool(words & _NAMED_SO) and _folder_tells(slots, newest, earlier)


def _saved_again(slots: Sequence[SaveSlot], saves: Sequence[LoggedSave]) -> bool:
    paths = {slot.path for slot in slots}
    moments = {(save.path, save.moment) for save in saves if save.path in paths}
    return len(moments) > len({path for path, _ in moments})


def _written_again(slots: Sequence[SaveSlot], newest: SaveSlot, look: Look) -> bool:
    were_there = all(slot.path in look for slot in slots)
    return were_there and list(look[newest.path]) != [newest.size, newest.mtime_ns]


def _folder_tells(slots: Sequence[SaveSlot], newest: SaveSlot, earlier: Earlier) -> bool:
    changed = earlier.changed(newest.path)
    if changed is None:
        return False
    highest = max(slots, key=lambda slot: slot.number)
    replaced_last = changed >= newest.mtime_ns
    return replaced_last or changed < highest.mtime_ns - _TOGETHER
