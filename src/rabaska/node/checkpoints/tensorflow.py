"""Checkpoints of TensorFlow: `ckpt-5.index`, and beside it `ckpt-5.data-00000-of-00001`.

The index is written last. A program is given `ckpt-5`, which no file is called.
"""

import os
import re
from typing import Iterator, List, NamedTuple, Optional

from .unreadable import Unread, holds_nothing, walk

_INDEX = ".index"
_OF_SAVED_MODEL = "variables" + _INDEX  # exported weights, and no state to go on from
_DATA = re.compile(r"(.*)\.data-(\d{5})-of-(\d{5})")
# The end of a table as LevelDB lays it out, which the index is (tensorflow/core/lib/io/format.h).
_MAGIC = b"\x57\xfb\x80\x8b\x24\x75\x47\xdb"


class TensorFlowSave(NamedTuple):
    path: str  # of the index, relative to the folder that was searched
    data: List[str]
    size: int  # bytes
    mtime_ns: int  # of the index


def is_one(path: str) -> bool:
    """Whether a file is the index of a checkpoint."""
    if not path.endswith(_INDEX) or os.path.basename(path) == _OF_SAVED_MODEL:
        return False
    above, name = os.path.split(path)
    return bool(_data_of(name, os.listdir(above or ".")))


def _data_of(name: str, names: List[str]) -> List[str]:
    matches = [_DATA.fullmatch(other) for other in names]
    return sorted(part.group(0) for part in matches if part and part.group(1) + _INDEX == name)


def as_given(path: str) -> str:
    """What a program is given of a checkpoint: of TensorFlow's the name without its ending."""
    return path[: -len(_INDEX)] if is_one(path) else path


def parts(path: str) -> List[str]:
    """All files of a checkpoint, the index last."""
    above, name = os.path.split(path)
    return [os.path.join(above, part) for part in _data_of(name, os.listdir(above))] + [path]


def below(folder: str, unread: Unread) -> Iterator[TensorFlowSave]:
    for parent, _, names in walk(folder, unread):
        for name in names:
            if not name.endswith(_INDEX) or name == _OF_SAVED_MODEL:
                continue
            data = _data_of(name, names)
            if data:
                above = os.path.relpath(parent, folder)
                try:
                    states = [os.stat(os.path.join(parent, part)) for part in data + [name]]
                except OSError as problem:
                    if not holds_nothing(problem):
                        unread(problem)
                    continue
                paths = [os.path.normpath(os.path.join(above, part)) for part in data + [name]]
                size = sum(state.st_size for state in states)
                yield TensorFlowSave(paths[-1], paths[:-1], size, states[-1].st_mtime_ns)


def check(path: str) -> Optional[str]:
    """None when all of a checkpoint is there, else what is not."""
    above, name = os.path.split(path)
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        stream.seek(max(0, size - len(_MAGIC)))
        if stream.read() != _MAGIC:
            return "it is cut short: the end of the index is missing"
    data = _data_of(name, os.listdir(above))
    of = {part[-5:] for part in data}
    for count in of if len(of) == 1 else ():
        for number in range(int(count)):
            wanted = "{}.data-{:05d}-of-{}".format(name[: -len(_INDEX)], number, count)
            if wanted not in data:
                return "{} is missing".format(wanted)
    return None
