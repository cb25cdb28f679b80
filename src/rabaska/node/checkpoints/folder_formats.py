"""Checkpoints that libraries write as folders: a program is given the folder, all of it or none.

Each library has files by which its folder is known, and one that it writes last:

    Hugging Face's Trainer   checkpoint-500/         trainer_state.json
    Accelerate               any name                random_states_0.pkl
    PyTorch's DCP            any name                .metadata
    Orbax                    any name                renamed when it is complete
    DeepSpeed                any name                `latest`, beside the folder
    Megatron                 iter_0000500/           `latest_checkpointed_iteration.txt`, beside it

A library may also be told to write into `output` or `checkpoints` itself. What else lies there is
none of its checkpoint, and these two are never set aside.
"""

import fnmatch
import os
import re
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import checkpoint_names, commit
from .folder_kinds import DATA_SUFFIXES, KINDS, MEGATRON_TRACKER, UNRENAMED, FolderKind
from .unreadable import Unread, holds_nothing, ignored, walk

UNFINISHED = (".partial", ".tmp", ".temp", ".part", ".damaged")
_TO_BE_RENAMED = "tmp-"  # Transformers 4.36 and 4.37 write to `tmp-checkpoint-500`
_SHARED = ("output", "checkpoints")
_LONGEST_TAG = 256  # bytes


class FolderFormat(NamedTuple):
    path: str  # relative to the folder that was searched
    files: List[str]  # relative to this folder
    size: int  # bytes
    mtime_ns: int  # of the file that was written last
    shared: bool  # whether other files in it are none of the checkpoint


def is_unfinished(name: str) -> bool:
    """Whether a folder's name says that nothing in it is complete yet, or any more."""
    if name.startswith(_TO_BE_RENAMED) and checkpoint_names.names_a_step(name):
        return True
    return name.endswith(UNFINISHED) or UNRENAMED in name


def is_one(path: str) -> bool:
    """Whether a folder is such a checkpoint, complete or not."""
    return _kind(path) is not None


def _kind(path: str) -> Optional[FolderKind]:
    try:
        names = os.listdir(path)
    except OSError as problem:
        if holds_nothing(problem):
            return None
        raise
    return _kind_with(path, names) or _kind_as_beside(path, names, {})


def _kind_with(path: str, names: List[str]) -> Optional[FolderKind]:
    for kind in KINDS:
        if re.fullmatch(kind.name, os.path.basename(path)) and _fitting(names, kind.marks):
            return kind if kind.parts or not _is_shared(path) else None
    return None


def _fitting(names: Sequence[str], patterns: Sequence[str]) -> List[str]:
    return [name for name in names if any(fnmatch.fnmatchcase(name, each) for each in patterns)]


def _is_shared(path: str) -> bool:
    return os.path.basename(path) in _SHARED


class _Beside(NamedTuple):
    kind: FolderKind
    path: str  # of one such folder


_Families = Dict[str, Dict[str, _Beside]]  # of each folder: how those in it are called, no steps


def _kind_as_beside(path: str, names: List[str], known: _Families) -> Optional[FolderKind]:
    """The kind of `epoch_2`, for an `epoch_3` that was left before any mark of it was written.

    A program may put anything into such a folder, so some data of a save must be there.
    """
    above, name = os.path.split(path)
    if not names or not checkpoint_names.names_a_step(name) or is_unfinished(name):
        return None
    if above not in known:
        known[above] = dict(_kinds_in(above))
    beside = known[above].get(checkpoint_names.step_in(name).family)
    if beside is None or not beside.kind.last:
        return None
    begun = _fitting(names, beside.kind.data) or _weights(path) & _weights(beside.path)
    return beside.kind if begun else None


def _weights(path: str) -> Set[str]:
    """Files that are called like a model, as a program may add some to those of its library."""
    found = set()  # type: Set[str]
    for parent, _, names in walk(path, ignored):
        found.update(os.path.relpath(os.path.join(parent, name), path) for name in names)
    return {
        name for name in found if name.endswith(DATA_SUFFIXES) and checkpoint_names.is_state(name)
    }


def _kinds_in(folder: str) -> Iterator[Tuple[str, _Beside]]:
    try:
        with_steps = [name for name in os.listdir(folder) if checkpoint_names.names_a_step(name)]
    except OSError:
        return
    for name in with_steps:
        path = os.path.join(folder, name)
        try:
            kind = None if is_unfinished(name) else _kind_with(path, os.listdir(path))
        except OSError:
            continue  # a file, or it is told of by whoever looks into it
        if kind is not None:
            yield checkpoint_names.step_in(name).family, _Beside(kind, path)


def below(folder: str, unread: Unread = ignored) -> Iterator[FolderFormat]:
    """Every such checkpoint below `folder`, in no order; links to folders are not followed."""
    known = {}  # type: _Families
    for path, inside, names in walk(folder, unread):
        inside[:] = [name for name in inside if not is_unfinished(name)]
        if path == folder:
            continue
        there = inside + names
        kind = _kind_with(path, there) or _kind_as_beside(path, there, known)
        if kind is None:
            continue
        if not _is_shared(path):
            inside[:] = []
        yield _look(path, folder, kind, unread)


def _look(path: str, folder: str, kind: FolderKind, unread: Unread) -> FolderFormat:
    size = newest = 0
    names = _files_of(path, kind, unread)
    for name in names:
        try:
            status = os.stat(os.path.join(path, name))
        except OSError as problem:
            if not holds_nothing(problem):
                unread(problem)
            continue
        size, newest = size + status.st_size, max(newest, status.st_mtime_ns)
    return FolderFormat(os.path.relpath(path, folder), names, size, newest, _is_shared(path))


def _files_of(path: str, kind: FolderKind, unread: Unread) -> List[str]:
    """The files of a checkpoint, relative to its folder."""
    found = []  # type: List[str]
    for parent, inside, names in walk(path, unread):
        if _is_shared(path):
            inside[:], names = [], _fitting(names, kind.parts)
        found.extend(os.path.relpath(os.path.join(parent, name), path) for name in names)
    return sorted(found)


def check(path: str, check_file: Callable[[str], Optional[str]]) -> Optional[str]:
    """None when every file is complete as far as `check_file` can tell, else why it is not."""
    kind = _kind(path)
    if kind is None:
        return "it is gone"
    names = _files_of(path, kind, _refuse)
    if kind.last and kind.last not in names:
        return "it was left half written: {} is missing".format(kind.last)
    if UNRENAMED in os.path.basename(path):
        return "it was left half written: Orbax had not renamed it"
    if kind.pointer and not _is_finished(path, kind, names):
        return "it was left half written: `{}` does not name it yet".format(kind.pointer)
    for name in names:
        try:
            size = os.path.getsize(os.path.join(path, name))
        except FileNotFoundError:
            return "{}: it is gone, or a broken link".format(name)
        if size == 0 and not _must_hold_data(name, kind):
            continue
        why = check_file(os.path.join(path, name))
        if why is not None:
            return "{}: {}".format(name, why)
    return None


def _refuse(problem: OSError) -> None:
    raise problem


def _must_hold_data(name: str, kind: FolderKind) -> bool:
    """False for files that may be empty: `merges.txt`, or the `.distcp` of a rank with no part."""
    return name.endswith(DATA_SUFFIXES) or name == kind.last


def _is_finished(path: str, kind: FolderKind, names: List[str]) -> bool:
    """False for a folder that is newer than the one that is named as the newest complete one.

    For DeepSpeed it must also lack files: a program may save a tag without having it named, or go
    back to an earlier one.
    """
    above, own = os.path.split(path)
    try:
        with open(os.path.join(above, kind.pointer), "rb") as stream:
            named = os.fsdecode(stream.read(_LONGEST_TAG)).strip()
    except OSError as problem:
        if holds_nothing(problem):
            return True
        raise
    if kind.pointer == MEGATRON_TRACKER:
        step, named_step = _iteration(own), _iteration(named)
        return step is None or named_step is None or step <= named_step
    there = os.path.join(above, named)
    if own == named or not named or os.path.basename(named) != named or not os.path.isdir(there):
        return True
    complete = _look(there, above, kind, _refuse)
    return not _is_newer(_look(path, above, kind, _refuse), complete) or set(names).issuperset(
        complete.files
    )


def _is_newer(one: FolderFormat, other: FolderFormat) -> bool:
    """By the steps in their names, where these differ in nothing else; by time otherwise."""
    ours, theirs = checkpoint_names.step_in(one.path), checkpoint_names.step_in(other.path)
    if ours.family == theirs.family and ours.place != theirs.place:
        return ours.place > theirs.place
    return one.mtime_ns > other.mtime_ns


def _iteration(name: str) -> Optional[int]:
    """Of `iter_0000500`, or `500` as Megatron's tracker names it."""
    found = re.fullmatch(r"(?:iter_)?(\d+)", name)
    return int(found.group(1)) if found else None


def set_aside(path: str) -> None:
    """Rename a damaged folder; of one that others share, the checkpoint's own files."""
    if not _is_shared(path) or not os.path.isdir(path):
        commit.set_aside(path)
        return
    kind = _kind(path)
    for name in [] if kind is None else _files_of(path, kind, ignored):
        commit.set_aside(os.path.join(path, name))
