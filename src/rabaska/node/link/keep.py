"""What the program leaves beside its code, brought to where it outlives the job."""

import fnmatch
import os
import shutil
import stat
from typing import Callable, Iterator, List, NamedTuple, Sequence

from ..saves import checkpoints, order, saved, units
from ..saves.units import Unit
from . import copies
from .copies import Copies
from .copying import Going, OutOfTime, always, copy_folder_whole, copy_whole
from .snapshot import Listing, listing

PASSED_OVER = (
    "__pycache__", "*.pyc", "*.pyo", ".git", ".ipynb_checkpoints", ".pytest_cache", ".mypy_cache",
    ".ruff_cache", ".nfs*", "*.partial", "core", "core.[0-9]*", "*.orbax-checkpoint-tmp*",
)  # fmt: skip


class Kept(NamedTuple):
    paths: List[str]
    size: int  # bytes
    problems: List[str]
    left: Sequence[str] = ()  # what there was no time for


def show(code: str, carried: str, keep: List[str]) -> None:
    """Make `keep`, and what earlier links left beside the code, appear beside it as links."""
    output = os.path.join(carried, "output")
    known = Copies(code, carried)
    for path in keep:
        _show_one(code, path, os.path.join(output, path))
    for path in known.paths():
        there = os.path.join(output, known.place_of(path))
        if os.path.lexists(there):
            _show_one(code, path, there)
    known.shown(keep)


def _show_one(code: str, path: str, there: str) -> None:
    here = os.path.join(code, path)
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
    return Copies("", carried).paths()


def keep_new(
    code: str,
    carried: str,
    before: Listing,
    may_write: Callable[[], bool] = always,
    patterns: Sequence[str] = (),
    going: Going = always,
    said: copies.Said = copies.unsaid,
) -> Kept:
    """Copy every file that is new or changed beside the code to the output, while there is time.

    The newest checkpoint comes first, then older ones, then the rest, small files first. What
    cannot be copied is a problem to report; the others are kept all the same, and what an
    earlier link kept under that name stays as it was.
    """
    paths, size, problems, left = [], 0, [], []  # type: List[str], int, List[str], List[str]
    known = Copies(code, carried, said)
    for unit in _in_order(code, carried, before, list(patterns)):
        if not may_write():
            break
        try:
            size += _keep_one(code, os.path.join(carried, "output"), unit, going, known)
            paths.extend(unit.files)
        except OutOfTime:
            left.extend(unit.files)
        except OSError as problem:
            what = unit.folder or unit.files[0]
            problems.append("{}: {}".format(what, problem.strerror or problem))
    try:
        if paths:
            known.remember(paths)
    except OSError as problem:
        problems.append("{}: {}".format(copies.RECORD, problem.strerror or problem))
    return Kept(sorted(paths), size, problems, left)


def _keep_one(code: str, output: str, unit: Unit, going: Going, known: Copies) -> int:
    there = {path: os.path.join(output, known.place_of(path)) for path in unit.files}
    if all(_is_same(os.path.join(code, path), target) for path, target in there.items()):
        return 0  # it was rescued in time
    if not going():
        raise OutOfTime()
    return copy_unit(code, output, unit.folder or unit.files[0], going, known, bool(unit.folder))


def copy_unit(
    code: str, output: str, path: str, going: Going, known: Copies, is_folder: bool = False
) -> int:
    """Copy a file, or a folder that is one save, to the output; its size."""
    place = known.choose(path, is_folder)
    if place is None:
        return 0
    source, target = os.path.join(code, path), os.path.join(output, place)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if is_folder:
        size = copy_folder_whole(source, target, os.path.dirname(code), going)
    else:
        size = copy_whole(source, target, going)
    known.note(place)
    return size


def _is_same(source: str, target: str) -> bool:
    try:
        one, other = os.lstat(source), os.lstat(target)
    except OSError:
        return False
    same = (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
    return same and stat.S_ISREG(one.st_mode) and stat.S_ISREG(other.st_mode)


def _in_order(code: str, carried: str, before: Listing, patterns: List[str]) -> List[Unit]:
    """What is new, as units that are copied one after another."""
    groups = units.grouped(new_files(code, before), units.libraries(code))
    left = [Unit("", [path]) for path in groups.pop("", [])]
    left += [Unit(folder, sorted(paths)) for folder, paths in groups.items()]
    of = {path: unit for unit in left for path in unit.files}
    of.update((unit.folder, unit) for unit in left if unit.folder)
    watched = saved.beside_code(saved.read(carried))
    ordered = []  # type: List[Unit]
    for chosen in order.in_order(checkpoints.everything(code, patterns), watched):
        together = [of.get(chosen.path)]
        if not ordered:
            found = list(checkpoints.everything(code, patterns))
            one = units.unit_of(chosen, found, code, [])
            together += [of.get(path) for path in one.files]
        for unit in together:
            if unit is not None and unit not in ordered:
                ordered.append(unit)
    rest = [unit for unit in left if unit not in ordered]
    return ordered + sorted(rest, key=lambda unit: (_size(code, unit), unit))


def _size(code: str, unit: Unit) -> int:
    return sum(os.lstat(os.path.join(code, path)).st_size for path in unit.files)


def new_files(code: str, before: Listing) -> Iterator[str]:
    """Files below `code` that were not there, or not so, when the program started."""
    for path, state in sorted(listing(code).items()):
        if before.get(path) == state or _passed_over(path):
            continue
        try:
            mode = os.lstat(os.path.join(code, path)).st_mode
        except FileNotFoundError:
            continue  # a program that runs has removed it
        if stat.S_ISREG(mode) or (stat.S_ISLNK(mode) and _stays_inside(code, path)):
            yield path


def _passed_over(path: str) -> bool:
    parts = path.split("/")
    return any(fnmatch.fnmatchcase(part, pattern) for part in parts for pattern in PASSED_OVER)


def _stays_inside(code: str, path: str) -> bool:
    target = os.readlink(os.path.join(code, path))
    climbed = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return not os.path.isabs(target) and not climbed.startswith("..")
