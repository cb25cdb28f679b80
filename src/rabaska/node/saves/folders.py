"""Checkpoints that libraries write as folders: a program is given the folder, all of it or none.

Each library has files by which its folder is known, and one that it writes last:

    Hugging Face's Trainer   checkpoint-500/         trainer_state.json
    Accelerate               checkpoint_0/           random_states_0.pkl
    PyTorch's DCP            any name                .metadata
    Orbax                    any name                renamed when it is complete
    DeepSpeed                global_step500/         `latest`, beside the folder
"""

import fnmatch
import os
import re
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence

from .unreadable import Unread, holds_nothing, ignored, walk

LAST = "trainer_state.json"
UNRENAMED = ".orbax-checkpoint-tmp"  # in the name of a folder that Orbax is still writing
_HOLD_DATA = (
    ".pt", ".pth", ".tar", ".ckpt", ".bin", ".safetensors", ".npz", ".npy", ".h5", ".hdf5",
    ".keras", ".pkl", ".msgpack",
)  # fmt: skip
_LATEST = "latest"  # of DeepSpeed: the name of the newest complete folder


class _Kind(NamedTuple):
    name: str  # a regular expression for all of the folder's name
    marks: Sequence[str]  # patterns of files; one of them is there
    last: str  # the file that is written last; "" where it is none of the folder's


_KINDS = [
    _Kind(r"checkpoint-\d+", ("training_args.bin", LAST), LAST),
    _Kind(r"checkpoint_\d+", ("random_states_*.pkl", "optimizer.bin"), "random_states_0.pkl"),
    _Kind(r".*", (".metadata", "*.distcp"), ".metadata"),
    _Kind(r".*", ("_CHECKPOINT_METADATA", "manifest.ocdbt"), ""),
    _Kind(r".*", ("mp_rank_*_model_states.pt", "zero_pp_rank_*_states.pt"), ""),
]


class Folder(NamedTuple):
    path: str  # relative to the folder that was searched
    files: List[str]  # relative to this folder
    size: int  # bytes
    mtime_ns: int  # of the file that was written last


def is_one(path: str) -> bool:
    """Whether a folder is such a checkpoint, complete or not."""
    return _kind(path) is not None


def _kind(path: str) -> Optional[_Kind]:
    try:
        return _kind_with(path, os.listdir(path))
    except OSError as problem:
        if holds_nothing(problem):
            return None
        raise


def _kind_with(path: str, names: List[str]) -> Optional[_Kind]:
    for kind in _KINDS:
        if re.fullmatch(kind.name, os.path.basename(path)) and any(
            fnmatch.fnmatchcase(name, mark) for name in names for mark in kind.marks
        ):
            return kind
    return None


def below(folder: str, unread: Unread = ignored) -> Iterator[Folder]:
    """Every such checkpoint below `folder`, in no order; links to folders are not followed."""
    for path, inside, names in walk(folder, unread):
        if path == folder or _kind_with(path, names) is None:
            continue
        inside[:] = []
        if UNRENAMED not in os.path.basename(path):
            yield _look(path, folder, unread)


def _look(path: str, folder: str, unread: Unread) -> Folder:
    size = newest = 0
    names = list(_files(path, unread))
    for name in names:
        try:
            status = os.stat(os.path.join(path, name))
        except OSError as problem:
            if not holds_nothing(problem):
                unread(problem)
            continue
        size, newest = size + status.st_size, max(newest, status.st_mtime_ns)
    return Folder(os.path.relpath(path, folder), names, size, newest)


def _files(path: str, unread: Unread) -> Iterator[str]:
    for parent, _, names in walk(path, unread):
        for name in names:
            yield os.path.relpath(os.path.join(parent, name), path)


def check(path: str, check_file: Callable[[str], Optional[str]]) -> Optional[str]:
    """None when every file is complete as far as `check_file` can tell, else why it is not."""
    names = sorted(_files(path, _refuse))
    kind = _kind(path)
    if kind is not None and kind.last and kind.last not in names:
        return "it was left half written: {} is missing".format(kind.last)
    if UNRENAMED in os.path.basename(path):
        return "it was left half written: Orbax had not renamed it"
    if not _is_finished(path):
        return "it was left half written: `{}` does not name it yet".format(_LATEST)
    for name in names:
        if not _must_hold_data(name, kind) and os.path.getsize(os.path.join(path, name)) == 0:
            continue
        why = check_file(os.path.join(path, name))
        if why is not None:
            return "{}: {}".format(name, why)
    return None


def _refuse(problem: OSError) -> None:
    raise problem


def _must_hold_data(name: str, kind: Optional[_Kind]) -> bool:
    """False for files that may be empty: `merges.txt`, or the `.distcp` of a rank with no part."""
    return name.endswith(_HOLD_DATA) or (kind is not None and name == kind.last)


def _is_finished(path: str) -> bool:
    """False for a folder of DeepSpeed that is newer than the one its `latest` names."""
    own = _step(os.path.basename(path))
    try:
        with open(os.path.join(os.path.dirname(path), _LATEST), "rb") as stream:
            named = _step(os.fsdecode(stream.read(256)).strip())
    except OSError as problem:
        if holds_nothing(problem):
            return True
        raise
    return own is None or named is None or own <= named


def _step(name: str) -> Optional[int]:
    found = re.fullmatch(r"global_step(\d+)", name)
    return int(found.group(1)) if found else None
