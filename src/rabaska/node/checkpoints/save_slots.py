"""Slots that a program writes in turn (`ckpt_0`, `ckpt_1`, `ckpt_0` …): their numbers are no steps.

From names and times alone they cannot be told from steps whose clock was set back, so something
must show that a slot was written again:

- the watcher saw it saved more than once;
- it has changed since an earlier look, and no number has come since;
- the folder: it changes when a file is created or replaced. Had the clock been set back, it would
  have changed last when the highest number was created.
"""

from typing import Callable, Mapping, NamedTuple, Optional, Sequence, Set

from .save_log import LoggedSave

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
