"""Checkpoints that other libraries write as folders: `checkpoint-500` of Hugging Face's Trainer.

It writes weights and `training_args.bin` first and `trainer_state.json` last of what continuing
needs, so that a folder without the latter was left half written. A program is given the folder.
"""

import os
import re
from typing import Callable, Iterator, List, NamedTuple, Optional

LAST = "trainer_state.json"
_MARKS = {"training_args.bin", LAST}
_NAME = re.compile(r"checkpoint-\d+\Z")


class Folder(NamedTuple):
    path: str  # relative to the folder that was searched
    files: List[str]  # relative to this folder
    size: int  # bytes
    mtime_ns: int  # of the file that was written last


def is_one(path: str) -> bool:
    """Whether a folder is such a checkpoint, whole or not."""
    if not _NAME.match(os.path.basename(path)):
        return False
    try:
        return not _MARKS.isdisjoint(os.listdir(path))
    except OSError:
        return False


def below(folder: str) -> Iterator[Folder]:
    """Every such checkpoint below `folder`, in no order."""
    for parent, inside, _ in os.walk(folder):
        found = [name for name in inside if is_one(os.path.join(parent, name))]
        inside[:] = [name for name in inside if name not in found]
        for name in found:
            yield _look(os.path.join(parent, name), folder)


def _look(path: str, folder: str) -> Folder:
    size = newest = 0
    names = list(_files(path))
    for name in names:
        try:
            status = os.stat(os.path.join(path, name))
        except OSError:
            continue  # gone since it was listed
        size, newest = size + status.st_size, max(newest, status.st_mtime_ns)
    return Folder(os.path.relpath(path, folder), names, size, newest)


def _files(path: str) -> Iterator[str]:
    for parent, _, names in os.walk(path):
        for name in names:
            yield os.path.relpath(os.path.join(parent, name), path)


def check(path: str, check_file: Callable[[str], Optional[str]]) -> Optional[str]:
    """None when every file is whole as far as `check_file` can tell, else why it is not."""
    names = sorted(_files(path))
    if LAST not in names:
        return "it was left half written: {} is missing".format(LAST)
    for name in names:
        why = check_file(os.path.join(path, name))
        if why is not None:
            return "{}: {}".format(name, why)
    return None
