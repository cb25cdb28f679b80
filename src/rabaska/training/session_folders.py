"""Which folder a session uses, and that no two trainings of one program use the same."""

import os
from typing import Any, Set, Union
from weakref import WeakValueDictionary

from .errors import WrongUse

ENDED_HERE: Set[str] = set()  # folders of sessions that came to their end in this process
_OPEN: "WeakValueDictionary[str, Any]" = WeakValueDictionary()  # sessions by folder


def absolute(chosen: Union[str, "os.PathLike[str]", None]) -> str:
    """A relative folder lies beside the code, which in a job is gone with it."""
    kept = os.environ.get("RABASKA_CHECKPOINTS")
    if chosen is None:
        return os.path.abspath(kept or "checkpoints")
    return os.path.abspath(os.path.join(kept or "", os.fspath(chosen)))


def refuse_if_open(folder: str) -> None:
    if folder in _OPEN:
        raise _taken(folder, "another session is open in it")


def refuse_if_ended(folder: str) -> None:
    """Its weights would be those of the training that ended, and nothing would be trained."""
    if folder in ENDED_HERE:
        raise _taken(folder, "another training of this program has ended in it")


def _taken(folder: str, why: str) -> WrongUse:
    return WrongUse(
        "this session cannot use the folder {}".format(folder),
        why="{}, and each training needs its own checkpoints".format(why),
        hint='name each session of a program, such as session("fold-1", model=model); to train '
        "further with the same one, start the program again",
    )


def opened(folder: str, session: Any) -> None:
    _OPEN[folder] = session
    ENDED_HERE.discard(folder)  # its checkpoints were taken away: this one is another training


def closed(folder: str, *, ended: bool) -> None:
    _OPEN.pop(folder, None)
    if ended:
        ENDED_HERE.add(folder)
