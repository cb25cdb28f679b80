"""Which files of the output are our copies of files beside the code, and which the program's own.

A program may save `model.pt` beside its code, and another `model.pt` to its output. A copy takes
the place of a file in the output only if we put that file there and nobody has touched it since;
otherwise it is kept in the folder `beside-code` of the output.
"""

import filecmp
import itertools
import os
import stat
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

from .. import files
from ..record.events import say
from ..record.field_types import numbers
from . import copy_files

RECORD = "beside.json"  # in what is carried: which files of the output lay beside the code
ELSEWHERE = "beside-code"  # in the output: what would have replaced the program's own files

Notify = Callable[[str, str], None]  # path, where it is kept instead
# A move between disks writes into the file that is there, and sets its size and time: only the
# time of change, which nobody can set, tells then.
_State = Tuple[int, int, int, int]  # inode, size, time, time of change


def ignored(path: str, place: str) -> None:
    pass


class Copies:
    def __init__(self, code: str, carried: str, notify: Notify = ignored) -> None:
        self._code = code
        self._output = os.path.join(carried, "output")
        self._record = os.path.join(carried, RECORD)
        self._notify = notify
        value = _read(self._record)
        self._paths = set(_texts(value.get("paths")))
        self._places = {
            one: place for one, place in _pairs(value.get("places")) if isinstance(place, str)
        }
        self._states = {
            path: tuple(state) for path, state in _pairs(value.get("copies")) if numbers(state)
        }
        self._same = _texts(value.get("same"))
        self._saves = set(_texts(value.get("saves")))

    def paths(self) -> List[str]:
        return sorted(self._paths)

    def is_save(self, path: str) -> bool:
        """Whether a file beside the code is a checkpoint, or a part of one."""
        return path in self._saves

    def place_of(self, path: str) -> str:
        """Where in the output a file, or a folder, is kept."""
        for above in _and_above(path):
            if above in self._places:
                return self._places[above] + path[len(above) :]
        return path

    def shown(self, keep: Sequence[str]) -> None:
        """What is kept is now seen beside the code: as it is, it is the program's file there."""
        places = [self.place_of(path) for path in self.paths()]
        self._states = dict(_states(self._output, places))
        self._same = [path.strip("/") for path in keep]
        if self._paths or self._same:
            self.write()

    def choose(self, path: str, is_folder: bool) -> Optional[str]:
        """A place in the output at which a copy of `path` replaces nothing of the program's own.

        None when the program put the same there itself.
        """
        known = self.place_of(path)
        for place in itertools.chain([known], _others(path)):
            if self._may_replace(path, place, is_folder):
                break
            if _is_equal(os.path.join(self._code, path), os.path.join(self._output, place)):
                return None
        if place != known:
            self._places[path] = place
            self._notify(path, place)
        return place

    def _may_replace(self, path: str, place: str, is_folder: bool) -> bool:
        target = os.path.join(self._output, place)
        if not os.path.lexists(target) or any(one in self._same for one in _and_above(path)):
            return True
        if os.path.isdir(target) and not os.path.islink(target):
            return is_folder and self.are_ours(path, place)
        return not is_folder and self.are_ours(path, place)

    def are_ours(self, path: str, place: str) -> bool:
        """Whether all at `place` is as we left it, or is seen through links beside the code."""
        for found, state in _states(self._output, [place]):
            here = os.path.join(self._code, path + found[len(place) :])
            there = os.path.join(self._output, found)
            through = os.path.islink(here) and os.path.realpath(here) == os.path.realpath(there)
            if self._states.get(found) != state and not through:
                return False
        return True

    def note(self, place: str) -> None:
        """What is at `place` now was copied there."""
        for old in [one for one in self._states if place in _and_above(one)]:
            del self._states[old]
        self._states.update(_states(self._output, [place]))

    def remember(self, paths: Sequence[str], saves: Sequence[str]) -> None:
        """Write down all, and that `paths` belong beside the code, for the jobs to come."""
        self._paths.update(paths)
        self._saves.update(saves)
        self.write()

    def write(self) -> None:
        # Pairs, because names that are no UTF-8 cannot be keys.
        value = {"paths": self.paths()}  # type: files.Json
        value["copies"] = sorted([path, list(state)] for path, state in self._states.items())
        if self._places:
            value["places"] = sorted(map(list, self._places.items()))
        if self._saves:
            value["saves"] = sorted(self._saves)
        if self._same:
            value["same"] = self._same
        files.write_json(self._record, value)


def _read(path: str) -> files.Json:
    """The record; of a damaged one nothing, and then new copies go to `beside-code`."""
    try:
        value = files.read_json(path)
    except ValueError:
        value = None
    if value is None and os.path.exists(path):
        say("{} is damaged; it is ignored".format(path))
    return value or {}


def _texts(value: object) -> List[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _pairs(value: object) -> Iterator[Tuple[str, Any]]:
    for one in value if isinstance(value, list) else []:
        if isinstance(one, list) and len(one) == 2 and isinstance(one[0], str):
            yield one[0], one[1]


def _and_above(path: str) -> List[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts), 0, -1)]


def _others(path: str) -> Iterator[str]:
    yield os.path.join(ELSEWHERE, path)
    for number in itertools.count(2):
        yield os.path.join("{}-{}".format(ELSEWHERE, number), path)


def _is_equal(source: str, target: str) -> bool:
    """Whether two files, or folders, hold the same."""
    if os.path.isdir(source):
        names = set(copy_files.states(source))
        return names == set(copy_files.states(target)) and all(
            _is_equal(os.path.join(source, name), os.path.join(target, name)) for name in names
        )
    try:
        one, other = os.lstat(source), os.lstat(target)
        regular = stat.S_ISREG(one.st_mode) and stat.S_ISREG(other.st_mode)
        same = regular and one.st_size == other.st_size
        return same and filecmp.cmp(source, target, shallow=False)
    except OSError:
        return False


def _states(output: str, places: Sequence[str]) -> Iterator[Tuple[str, _State]]:
    """Every file at or below the places, as it is now."""
    for place in places:
        path = os.path.join(output, place)
        found = [place]
        if os.path.isdir(path) and not os.path.islink(path):
            found = [
                os.path.relpath(os.path.join(parent, name), output)
                for parent, inside, names in os.walk(path)
                for name in names + [one for one in inside if os.path.islink(parent + "/" + one)]
            ]
        for one in found:
            try:
                status = os.lstat(os.path.join(output, one))
            except OSError:
                continue  # gone since it was listed
            size, written, changed = status.st_size, status.st_mtime_ns, status.st_ctime_ns
            yield one, (status.st_ino, size, written, changed)
