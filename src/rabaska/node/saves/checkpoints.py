"""The newest checkpoint that is whole, among all that a program left.

Which file a program continues from, when it leaves several:

1. Parts of a checkpoint (`optimizer.pt`, `scheduler.pt`, `rng_state.pth`) come after everything
   else, however new they are: no program continues from its optimizer alone.
2. Otherwise the newest save wins. Files written within ten seconds of each other count as one
   save, because `best.pt` is often a copy made just after `last.pt`. Within one save,
   names made for continuing come first (`last`, `latest`, `checkpoint`, `resume`, or a step or
   epoch number), then plain names (`model.pt`), then `best`, which may be an older state or
   weights without an optimizer.
3. Among equals the newer file, and at the same moment the later name: `epoch-10` after `epoch-9`.

The first in that order that proves whole is used. A narrower pattern in rabaska.toml overrules
all of it.
"""

import errno
import fnmatch
import os
import re
import stat
from typing import Callable, Iterator, List, NamedTuple, Optional, Tuple

from . import commit, folders, validity

DAMAGED = ".damaged"
UNFINISHED = (".partial", ".tmp", ".temp", ".part", DAMAGED)
DEFAULT_PATTERNS = [
    "*.pt", "*.pth", "*.pth.tar", "*.ckpt", "*.safetensors", "*.npz", "*.h5", "*.hdf5", "*.keras",
    "*.pkl",
]  # fmt: skip

SAVED_TOGETHER = 10 * 10**9  # nanoseconds

PARTS = {
    "optimizer", "optim", "opt", "scheduler", "sched", "scaler", "rng", "args", "history",
    "metrics", "tokenizer", "vocab", "predictions", "results",
}  # fmt: skip
FOR_CONTINUING = re.compile(
    r"^(last|latest|checkpoint|ckpt|chkpt|resume|snapshot|current|step|epoch|ep|iter|global)"
)
NUMBERED = re.compile(r"(^|[^a-zA-Z0-9])\d+(?![a-zA-Z0-9])")


class Checkpoint(NamedTuple):
    path: str  # relative to the folder that was searched
    size: int  # bytes
    mtime_ns: int


Report = Callable[[str, str], None]  # path, why


def newest_valid(
    folder: str,
    patterns: List[str],
    set_aside: bool = True,
    report: Optional[Report] = None,
    deep: bool = True,
) -> Optional[Checkpoint]:
    """The checkpoint to continue from, or None.

    Damaged files met on the way are told to `report`. With `set_aside` they are also renamed to
    `<name>.damaged`, so that they are met only once; only who holds the run, with no program
    running, may ask for that: a file still being written looks damaged too.
    """
    for candidate in in_order(_everything(folder, patterns)):
        path = os.path.join(folder, candidate.path)
        try:
            why = validity.check(path, deep=deep)
        except OSError as problem:
            why = "it cannot be read: {}".format(problem.strerror or problem)
            # Not proved damaged: left where it is, so that it is tried again next time.
            _tell(report, candidate.path, why)
            continue
        if why is None:
            return candidate
        if set_aside:
            why = _set_aside(path, why)
        _tell(report, candidate.path, why)
    return None


def _everything(folder: str, patterns: List[str]) -> Iterator[Checkpoint]:
    """Single files, and folders that are one checkpoint; of the latter no file by itself."""
    whole = list(_of_libraries(folder, patterns or DEFAULT_PATTERNS))
    inside = tuple(os.path.join(each.path, "") for each in whole)
    for found in candidates(folder, patterns):
        if not found.path.startswith(inside):
            yield found
    yield from whole
    yield from committed(folder)


def _of_libraries(folder: str, wanted: List[str]) -> Iterator[Checkpoint]:
    """Folders such as `checkpoint-500` that a pattern fits, or some file of theirs."""
    for found in folders.below(folder):
        paths = [found.path] + [os.path.join(found.path, name) for name in found.files]
        if any(matches(path, wanted) for path in paths):
            yield Checkpoint(found.path, found.size, found.mtime_ns)


def candidates(folder: str, patterns: List[str]) -> Iterator[Checkpoint]:
    """Every file below `folder` that is called like a checkpoint, in no order."""
    wanted = patterns or DEFAULT_PATTERNS
    for parent, below, names in os.walk(folder):
        below[:] = [name for name in below if not _is_one_checkpoint(name)]
        for name in names:
            path = os.path.relpath(os.path.join(parent, name), folder)
            if name.endswith(UNFINISHED) or not matches(path, wanted):
                continue
            try:
                status = os.stat(os.path.join(folder, path))
            except OSError:
                continue  # a dangling link, or gone since it was listed
            if stat.S_ISREG(status.st_mode):
                yield Checkpoint(path, status.st_size, status.st_mtime_ns)


def committed(folder: str) -> Iterator[Checkpoint]:
    """Every checkpoint below `folder` that is itself a folder with a manifest (see `commit`).

    They are called by no pattern: nothing else looks like one.
    """
    for parent, below, _ in os.walk(folder):
        inside = [name for name in below if commit.step_of(name) is not None]
        below[:] = [name for name in below if not _is_one_checkpoint(name)]
        for name in inside:
            path = os.path.join(parent, name)
            try:
                status = os.stat(os.path.join(path, commit.COMMIT))
            except OSError:
                continue  # somebody else's folder of that name, or one without its manifest
            size = commit.size_of(path)
            yield Checkpoint(os.path.relpath(path, folder), size, status.st_mtime_ns)


def _is_one_checkpoint(name: str) -> bool:
    """Whether a folder's files are no checkpoints of their own."""
    return commit.step_of(name) is not None or name.endswith(UNFINISHED)


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


def in_order(found: Iterator[Checkpoint]) -> List[Checkpoint]:
    """The order in which they are tried: see the rule at the top of this module."""
    newest_first = sorted(found, key=_age, reverse=True)
    whole = [checkpoint for checkpoint in newest_first if not _is_part(checkpoint.path)]
    parts = [checkpoint for checkpoint in newest_first if _is_part(checkpoint.path)]
    ordered = []  # type: List[Checkpoint]
    while whole:
        since = whole[0].mtime_ns - SAVED_TOGETHER
        together = [checkpoint for checkpoint in whole if checkpoint.mtime_ns >= since]
        whole = whole[len(together) :]
        ordered.extend(sorted(together, key=lambda checkpoint: _rank(checkpoint.path)))
    return ordered + parts


def _age(checkpoint: Checkpoint) -> Tuple[int, List[Tuple[int, int, str]]]:
    return checkpoint.mtime_ns, natural(checkpoint.path)


def natural(name: str) -> List[Tuple[int, int, str]]:
    """A sort key by which `epoch-9` comes before `epoch-10`."""
    pieces = re.findall(r"([0-9]+)|([^0-9]+)", name)
    return [(1, int(number), "") if number else (0, 0, text) for number, text in pieces]


def _words(path: str) -> List[str]:
    """The words of a path below `output/` or `checkpoints/`, which say nothing themselves."""
    inside = path.split("/", 1)[-1]
    return re.findall(r"[a-z]+", os.path.splitext(inside)[0].lower())


def _is_part(path: str) -> bool:
    return any(word in PARTS for word in re.findall(r"[a-z]+", os.path.basename(path).lower()))


def _rank(path: str) -> int:
    words = _words(path)
    if any(word.startswith("best") or word.endswith("best") for word in words):
        return 2
    if NUMBERED.search(os.path.basename(path)) or any(FOR_CONTINUING.match(w) for w in words):
        return 0
    return 1


def _set_aside(path: str, why: str) -> str:
    """Rename what is damaged, and add to `why` when that failed."""
    try:
        commit.set_aside(path)
    except OSError as problem:
        if problem.errno == errno.ENOENT:
            return why
        return "{} (and it cannot be renamed: {})".format(why, problem.strerror)
    return why


def _tell(report: Optional[Report], path: str, why: str) -> None:
    if report is not None:
        report(path, why)
