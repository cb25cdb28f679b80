"""What the program leaves beside its code, brought to where it outlives the job."""

import errno
import os
import stat
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..checkpoints import (
    commit,
    folder_formats,
    newest_checkpoint,
    order,
    save_slots,
    save_units,
    validity,
)
from ..checkpoints.commit import NO_SPACE
from ..checkpoints.save_units import Unit
from . import copied_files, copy_files
from .copied_files import Copies
from .copy_files import Going, OutOfTime, always, copy_folder_whole, copy_whole
from .ignored_files import is_byte_code, passed_over
from .unpacked_code import Listing, listing

# What somebody, or the storage itself, may put right within minutes.
PASSING = (*NO_SPACE, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EROFS, errno.ENOTCONN)


class KeptFiles(NamedTuple):
    paths: List[str]
    size: int  # bytes
    problems: List[str]
    left: Sequence[str] = ()  # what there was no time for, or no leave to write
    damaged: Sequence[Tuple[str, str]] = ()  # what is kept beside a valid copy, and why
    passed_over: Sequence[str] = ()  # what is new and no result
    failed: Sequence[str] = ()  # what could not be copied
    may_pass: bool = False  # whether it might be copied later
    cut_off: bool = False  # whether the run could not be written to for a while

    @property
    def missing(self) -> List[str]:
        return list(self.failed) + list(self.left)


def keep_new(
    code: str,
    carried: str,
    before: Listing,
    may_write: Callable[[], bool] = always,
    patterns: Sequence[str] = (),
    going: Going = always,
    said: copied_files.Notify = copied_files.ignored,
) -> KeptFiles:
    """Copy every file that is new or changed beside the code to the output, while there is time.

    The newest checkpoint comes first, then older ones, then the rest, small files first. What
    cannot be copied is a problem to report; the others are kept all the same, and what an
    earlier job kept under that name stays as it was. So does a valid checkpoint whose newer
    version is damaged: that is kept beside it.
    """
    paths, size, problems, left = [], 0, [], []  # type: List[str], int, List[str], List[str]
    damaged = []  # type: List[Tuple[str, str]]
    failed, may_pass, cut_off = [], False, False  # type: List[str], bool, bool
    known = Copies(code, carried, said)
    saves = Saves(patterns)
    for unit in _in_order(code, carried, before, list(patterns)):
        if not may_write():
            cut_off = True
            left.extend(unit.files)
            continue
        what = unit.folder or unit.files[0]
        try:
            if _is_there(code, carried, unit, known):
                paths.extend(unit.files)
                continue  # it was rescued in time
            if not going():
                raise OutOfTime()
            why = saves.damage(code, unit)
            if why is None or not replaces_valid(carried, unit, known, saves):
                size += copy_unit(
                    code, os.path.join(carried, "output"), what, going, known, bool(unit.folder)
                )
                paths.extend(unit.files)
            else:
                size += _copy_damaged(code, carried, unit, going, known)
                damaged.append((what, why))
        except OutOfTime:
            left.extend(unit.files)
        except OSError as problem:
            problems.append("{}: {}".format(what, problem.strerror or problem))
            failed.extend(unit.files)
            may_pass = may_pass or problem.errno in PASSING
    try:
        if paths:
            known.remember(paths, saves.among(paths, save_units.known(code)))
    except OSError as problem:
        problems.append("{}: {}".format(copied_files.RECORD, problem.strerror or problem))
    passed = _passed_over(code, before)
    return KeptFiles(
        sorted(paths), size, problems, left, damaged, passed, failed, may_pass, cut_off
    )


class Saves:
    """What is a checkpoint among files beside the code, and whether it is valid."""

    def __init__(self, patterns: Sequence[str]) -> None:
        # Patterns are guesses, and the usual formats tell by themselves when they are cut short.
        self._patterns = list(patterns) + newest_checkpoint.DEFAULT_PATTERNS

    def among(self, paths: Sequence[str], known: save_units.Known) -> List[str]:
        return [path for path in paths if self._is_one(path) or save_units.root(path, known)]

    def damage(self, folder: str, unit: Unit) -> Optional[str]:
        """Why a save below `folder` is no longer, or not yet, a valid one; None: nothing says so.

        OSError passes, as that of `validity.check`.
        """
        whole = os.path.join(folder, unit.folder)
        if unit.folder and _is_known_folder(whole):
            return validity.check(whole, deep=False)
        for path in unit.files:
            one = os.path.join(folder, path)
            if self._is_one(path) and os.path.isfile(one):
                why = validity.check(one, deep=False)
                if why is not None:
                    return why
        return None

    def _is_one(self, path: str) -> bool:
        return newest_checkpoint.matches(path, self._patterns)


def _is_known_folder(path: str) -> bool:
    return folder_formats.is_one(path) or commit.step_of(os.path.basename(path)) is not None


def _is_there(code: str, carried: str, unit: Unit, known: Copies) -> bool:
    output = os.path.join(carried, "output")
    there = {path: os.path.join(output, known.place_of(path)) for path in unit.files}
    return all(_is_same(os.path.join(code, path), target) for path, target in there.items())


def replaces_valid(carried: str, unit: Unit, known: Copies, saves: Saves) -> bool:
    """Whether a copy of the unit would take the place of a valid one in the output."""
    output = os.path.join(carried, "output")
    place = known.place_of(unit.folder or unit.files[0])
    there = os.path.join(output, place)
    if not os.path.lexists(there):
        return False
    older = Unit("", [place])
    if unit.folder and os.path.isdir(there):
        names = sorted(copy_files.states(there))
        older = Unit(place, [os.path.join(place, name) for name in names])
    return saves.damage(output, older) is None


def _copy_damaged(code: str, carried: str, unit: Unit, going: Going, known: Copies) -> int:
    path = unit.folder or unit.files[0]
    place = known.place_of(path) + commit.DAMAGED
    source, target = os.path.join(code, path), os.path.join(carried, "output", place)
    if unit.folder:
        return copy_folder_whole(source, target, os.path.dirname(code), going)
    return _copy_single(code, path, target, going)


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
        size = _copy_single(code, path, target, going)
    known.note(place)
    return size


def _copy_single(code: str, path: str, target: str, going: Going) -> int:
    leads_to = leads_inside(code, path)
    if leads_to is None:
        return copy_whole(os.path.join(code, path), target, going)
    # An absolute link would lead to the disk of this node, which is gone after the job.
    copy_files.make_link(target, os.path.relpath(leads_to, os.path.dirname(path) or "."))
    return 0


def _is_same(source: str, target: str) -> bool:
    try:
        one, other = os.lstat(source), os.lstat(target)
    except OSError:
        return False
    same = (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
    return same and stat.S_ISREG(one.st_mode) and stat.S_ISREG(other.st_mode)


def _in_order(code: str, carried: str, before: Listing, patterns: List[str]) -> List[Unit]:
    """What is new, as units that are copied one after another."""
    known = save_units.known(code)
    groups = save_units.grouped(new_files(code, before), known)
    left = [Unit("", [path]) for path in groups.pop("", [])]
    left += [Unit(folder, sorted(paths)) for folder, paths in groups.items()]
    of = {path: unit for unit in left for path in unit.files}
    of.update((unit.folder, unit) for unit in left if unit.folder)
    watched = save_slots.beside_code(save_slots.read(carried))
    ordered = []  # type: List[Unit]
    for chosen in order.in_order(newest_checkpoint.everything(code, patterns), watched):
        together = [of.get(chosen.path)]
        if not ordered:
            found = list(newest_checkpoint.everything(code, patterns))
            one = save_units.unit_of(chosen, found, code, known)
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
        if before.get(path) == state or passed_over(code, path):
            continue
        try:
            mode = os.lstat(os.path.join(code, path)).st_mode
        except FileNotFoundError:
            continue  # a program that runs has removed it
        if stat.S_ISREG(mode) or leads_inside(code, path) is not None:
            yield path


def _passed_over(code: str, before: Listing) -> List[str]:
    new = [path for path, state in listing(code).items() if before.get(path) != state]
    found = {passed_over(code, path) for path in new}
    found.update(path for path in new if _leads_out(code, path) and not passed_over(code, path))
    return sorted(path for path in found if path is not None and not is_byte_code(path))


def _leads_out(code: str, path: str) -> bool:
    return os.path.islink(os.path.join(code, path)) and leads_inside(code, path) is None


def leads_inside(code: str, path: str) -> Optional[str]:
    """What a link below `code` leads to, relative to `code`; None if out of it, or no link."""
    try:
        target = os.readlink(os.path.join(code, path))
    except OSError:
        return None
    if os.path.isabs(target):
        # A program knows its folder by the real path, or by that with which it was started.
        target = os.path.normpath(target)
        roots = [root for root in (code, os.path.realpath(code)) if target.startswith(root + "/")]
        return os.path.relpath(target, roots[0]) if roots else None
    climbed = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return None if climbed == ".." or climbed.startswith("../") else climbed
