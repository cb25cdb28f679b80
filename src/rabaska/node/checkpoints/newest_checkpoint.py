"""The newest checkpoint that is complete, among all that a program left.

In which order they are tried is decided in `order`; the first that proves complete is used. A
narrower pattern in rabaska.toml overrules all of it.
"""

import errno
import fnmatch
import os
import stat
from typing import Callable, Iterator, List, Optional, Sequence

from . import commit, folder_formats, save_slots, tensorflow, validity
from .folder_formats import UNFINISHED, FolderFormat
from .order import Candidate, in_order
from .save_slots import Earlier, Look
from .unreadable import Unread, Unreadable, holds_nothing, ignored, walk

DEFAULT_PATTERNS = [
    "*.pt",
    "*.pth",
    "*.pth.tar",
    "*.ckpt",
    "*.safetensors",
    "*.npz",
    "*.h5",
    "*.hdf5",
    "*.keras",
    "*.pkl",
    "*.pdparams",
]

_USUAL = {"*.pt", "*.pth", "*.ckpt", "*.safetensors"}  # who has these was not asked for less

Report = Callable[[str, str], None]  # path, why


def newest_valid(
    folder: str,
    patterns: List[str],
    set_aside: bool = True,
    report: Optional[Report] = None,
    deep: bool = True,
    looks: Sequence[Look] = (),
) -> Optional[Candidate]:
    """The checkpoint to continue from, or None; `looks` are what earlier jobs began with.

    Damaged files met on the way are told to `report`. With `set_aside` they are also renamed to
    `<name>.damaged`, so that they are met only once; only who holds the run, with no program
    running, may ask for that: a file still being written looks damaged too. Who holds the run is
    not given an older checkpoint, or none, because the newest cannot be read: Unreadable.
    """
    problems = []  # type: List[OSError]
    present = list(everything(folder, patterns, problems.append))
    if set_aside and problems:
        raise _unreadable(folder, problems[0])
    known = Earlier(looks=looks, changed=lambda path: _folder_changed(folder, path))
    for candidate in in_order(present, save_slots.read(folder), known):
        path = os.path.join(folder, candidate.path)
        try:
            why = validity.check(path, deep=deep)
        except OSError as problem:
            if set_aside and not holds_nothing(problem):
                raise _unreadable(folder, problem, candidate.path)
            continue  # not proved damaged: left where it is
        if why is None:
            return candidate
        if set_aside:
            why = _set_aside(path, why)
        if report is not None:
            report(candidate.path, why)
    return None


def _folder_changed(folder: str, path: str) -> Optional[int]:
    try:
        return os.stat(os.path.dirname(os.path.join(folder, path))).st_mtime_ns
    except OSError:
        return None


def _unreadable(folder: str, problem: OSError, path: str = "") -> Unreadable:
    refused = problem.filename
    inside = os.path.relpath(refused, folder) if isinstance(refused, str) else path
    return Unreadable(inside, problem)


def everything(folder: str, patterns: List[str], unread: Unread = ignored) -> Iterator[Candidate]:
    """Single files, and folders that are one checkpoint; of the latter no file by itself."""
    whole = list(_of_libraries(folder, patterns, unread))
    indexed = list(_of_tensorflow(folder, patterns, unread))
    inside = tuple(os.path.join(one.path, "") for one in whole if not one.shared)
    parts = {os.path.join(one.path, name) for one in whole if one.shared for name in one.files}
    parts.update(path for one in indexed for path in [one.path] + one.data)
    for candidate in candidates(folder, patterns, unread):
        if not candidate.path.startswith(inside) and candidate.path not in parts:
            yield candidate
    yield from (Candidate(one.path, one.size, one.mtime_ns) for one in whole)
    yield from (Candidate(one.path, one.size, one.mtime_ns) for one in indexed)
    yield from committed(folder, unread)


def _of_tensorflow(
    folder: str, patterns: List[str], unread: Unread
) -> Iterator[tensorflow.TensorFlowSave]:
    for candidate in tensorflow.below(folder, unread):
        paths = [candidate.path] + candidate.data
        if _usual(patterns) or any(matches(path, patterns) for path in paths):
            yield candidate


def _usual(patterns: List[str]) -> bool:
    return not patterns or _USUAL.issubset(patterns)


def _of_libraries(folder: str, patterns: List[str], unread: Unread) -> Iterator[FolderFormat]:
    """Folders such as `checkpoint-500` that a pattern fits, or some file of theirs.

    Their names need not fit the usual patterns: nothing else looks like them.
    """
    for candidate in folder_formats.below(folder, unread):
        paths = [candidate.path] + [os.path.join(candidate.path, name) for name in candidate.files]
        if _usual(patterns) or any(matches(path, patterns) for path in paths):
            yield candidate


def candidates(folder: str, patterns: List[str], unread: Unread = ignored) -> Iterator[Candidate]:
    """Every file below `folder` that is called like a checkpoint, in no order."""
    wanted = patterns or DEFAULT_PATTERNS
    for parent, below, names in walk(folder, unread):
        below[:] = [name for name in below if not _is_one_checkpoint(name)]
        for name in names:
            path = os.path.relpath(os.path.join(parent, name), folder)
            if name.endswith(UNFINISHED) or not matches(path, wanted):
                continue
            try:
                status = os.stat(os.path.join(folder, path))
            except OSError as problem:
                if not holds_nothing(problem):
                    unread(problem)
                continue
            if stat.S_ISREG(status.st_mode):
                yield Candidate(path, status.st_size, status.st_mtime_ns)


def committed(folder: str, unread: Unread = ignored) -> Iterator[Candidate]:
    """Every checkpoint below `folder` that is itself a folder with a manifest (see `commit`).

    They are called by no pattern: nothing else looks like one.
    """
    for parent, below, _ in walk(folder, unread):
        inside = [name for name in below if commit.step_of(name) is not None]
        below[:] = [name for name in below if not _is_one_checkpoint(name)]
        for name in inside:
            path = os.path.join(parent, name)
            try:
                status = os.stat(os.path.join(path, commit.COMMIT))
                size = commit.size_of(path)
            except OSError as problem:
                if not holds_nothing(problem):
                    unread(problem)
                continue  # somebody else's folder of that name, or one without its manifest
            yield Candidate(os.path.relpath(path, folder), size, status.st_mtime_ns)


def _is_one_checkpoint(name: str) -> bool:
    """Whether a folder's files are no checkpoints of their own."""
    return commit.step_of(name) is not None or folder_formats.is_unfinished(name)


def matches(path: str, patterns: List[str]) -> bool:
    """Whether a pattern fits: one without a slash the name, one with a slash the path.

    The path may be given from `output/` or `checkpoints/` on, or from inside them, as the
    program that wrote it would say.
    """
    inside = path.split("/", 1)[-1]
    name = os.path.basename(path)
    for pattern in patterns:
        bare = pattern[3:] if pattern.startswith("**/") else pattern
        spellings = [path, inside] if "/" in bare else [name]
        if any(fnmatch.fnmatchcase(spelling, bare) for spelling in spellings):
            return True
        if bare != pattern and fnmatch.fnmatchcase(path, pattern):
            return True
    return False


def _set_aside(path: str, why: str) -> str:
    """Rename what is damaged, and add to `why` when that failed."""
    try:
        folder_formats.set_aside(path)
    except OSError as problem:
        if problem.errno == errno.ENOENT:
            return why
        return "{} (and it cannot be renamed: {})".format(why, problem.strerror)
    return why
