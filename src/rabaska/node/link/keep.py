"""What the program leaves beside its code, brought to where it outlives the job."""

import fnmatch
import os
import shutil
import stat
from typing import Callable, Iterator, List, NamedTuple

from .. import files
from .snapshot import Listing, listing

PASSED_OVER = (
    "__pycache__", "*.pyc", "*.pyo", ".git", ".ipynb_checkpoints", ".pytest_cache", ".mypy_cache",
    ".ruff_cache", ".nfs*", "*.partial", "core", "core.[0-9]*",
)  # fmt: skip
BESIDE = "beside.json"  # in what is carried: which files of the output lay beside the code


class Kept(NamedTuple):
    paths: List[str]
    size: int  # bytes
    problems: List[str]


def show(code: str, carried: str, keep: List[str]) -> None:
    """Make `keep`, and what earlier links left beside the code, appear beside it as links."""
    output = os.path.join(carried, "output")
    for path in keep:
        _show_one(code, output, path)
    for path in beside(carried):
        if os.path.lexists(os.path.join(output, path)):
            _show_one(code, output, path)


def _show_one(code: str, output: str, path: str) -> None:
    here, there = os.path.join(code, path), os.path.join(output, path)
    if _covered(code, path):
        return
    if os.path.isdir(here):
        _merge(here, there)
        shutil.rmtree(here)
    elif os.path.lexists(here):
        if not os.path.lexists(there):
            copy_whole(here, there)
        os.unlink(here)
    elif not os.path.lexists(there):
        # Nothing says yet what it will be; a name without a suffix is taken for a folder.
        is_file = "." in os.path.basename(path).lstrip(".") and not path.endswith("/")
        os.makedirs(os.path.dirname(there) if is_file else there, exist_ok=True)
    here = here.rstrip("/")
    os.makedirs(os.path.dirname(here), exist_ok=True)
    os.symlink(there.rstrip("/"), here)


def _covered(code: str, path: str) -> bool:
    """Whether `path`, or a folder above it, is shown already."""
    parts = path.strip("/").split("/")
    above = [os.path.join(code, *parts[:depth]) for depth in range(1, len(parts) + 1)]
    return any(os.path.islink(one) for one in above)


def _merge(source: str, target: str) -> None:
    os.makedirs(target, exist_ok=True)
    for path in listing(source):
        there = os.path.join(target, path)
        if not os.path.lexists(there) and os.path.isfile(os.path.join(source, path)):
            os.makedirs(os.path.dirname(there), exist_ok=True)
            copy_whole(os.path.join(source, path), there)


def beside(carried: str) -> List[str]:
    value = files.read_json(os.path.join(carried, BESIDE)) or {}
    return [str(path) for path in value.get("paths", [])]


def keep_new(
    code: str, carried: str, before: Listing, may_write: Callable[[], bool] = lambda: True
) -> Kept:
    """Copy every file that is new or changed beside the code to the output.

    A file that cannot be copied is a problem to report; the others are kept all the same, and
    what an earlier link kept under that name stays as it was.
    """
    paths, size, problems = [], 0, []  # type: List[str], int, List[str]
    output = os.path.join(carried, "output")
    for path in new_files(code, before):
        if not may_write():
            break
        source = os.path.join(code, path)
        try:
            os.makedirs(os.path.dirname(os.path.join(output, path)), exist_ok=True)
            copy_whole(source, os.path.join(output, path))
            size += os.lstat(source).st_size
            paths.append(path)
        except OSError as problem:
            problems.append("{}: {}".format(path, problem.strerror or problem))
    try:
        remember(carried, paths)
    except OSError as problem:
        problems.append("{}: {}".format(BESIDE, problem.strerror or problem))
    return Kept(paths, size, problems)


def remember(carried: str, paths: List[str]) -> None:
    """Note that `paths` of the output belong beside the code, for the links to come."""
    known = set(beside(carried))
    if not known.issuperset(paths):
        files.write_json(os.path.join(carried, BESIDE), {"paths": sorted(known.union(paths))})


def new_files(code: str, before: Listing) -> Iterator[str]:
    """Files below `code` that were not there, or not so, when the program started."""
    for path, state in sorted(listing(code).items()):
        if before.get(path) == state or _passed_over(path):
            continue
        mode = os.lstat(os.path.join(code, path)).st_mode
        if stat.S_ISREG(mode) or (stat.S_ISLNK(mode) and _stays_inside(code, path)):
            yield path


def _passed_over(path: str) -> bool:
    parts = path.split("/")
    return any(fnmatch.fnmatchcase(part, pattern) for part in parts for pattern in PASSED_OVER)


def _stays_inside(code: str, path: str) -> bool:
    target = os.readlink(os.path.join(code, path))
    climbed = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return not os.path.isabs(target) and not climbed.startswith("..")


class Changed(OSError):
    """The file changed while it was copied."""


def copy_whole(source: str, target: str, still: Callable[[], bool] = lambda: True) -> None:
    """Copy a file (or a link) so that `target` is there whole, durably, or as it was before.

    `still` is asked at the end whether the source is what it was at the beginning.
    """
    partial = target + files.PARTIAL
    files.remove_if_there(partial)
    try:
        if os.path.islink(source):
            os.symlink(os.readlink(source), partial)
        else:
            with open(source, "rb") as reader, open(partial, "wb") as writer:
                shutil.copyfileobj(reader, writer, 1 << 20)
                writer.flush()
                os.fsync(writer.fileno())
            shutil.copystat(source, partial)
        if not still():
            raise Changed("{} changed while it was copied".format(source))
        os.replace(partial, target)
    except BaseException:
        files.remove_if_there(partial)
        raise
    files.sync_folder(os.path.dirname(target))
