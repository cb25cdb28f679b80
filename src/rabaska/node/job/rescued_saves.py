"""The saves backed up so far: when the program deletes or moves one, its copy follows."""

import os
from typing import Dict, List, Optional, Tuple

from .. import files
from ..checkpoints.save_units import Unit
from . import copied_files, copy_files, results
from .unpacked_code import Listing

State = Tuple[int, int]  # size and time


class RescuedSaves:
    def __init__(self, code: str, carried: str, before: Listing, copied: Dict[str, State]) -> None:
        self._code = code
        self._carried = carried
        self._before = before
        self._copied = copied  # the state in which each file was copied; shared with `Rescue`
        self._rescued: List[Unit] = []

    def follow(self, newest: Unit, known: copied_files.Copies) -> None:
        """After the newest save was copied: drop or move the copies of older ones.

        A program that deletes old checkpoints does not want their copies either. One that
        moved them to the output itself does: what is no longer our copy stays. Where one moved
        them within the code folder, the copies move, too.
        """
        written = set(newest.files)
        self._rescued = [unit for unit in self._rescued if written.isdisjoint(unit.files)]
        for unit in list(self._rescued):
            there = [os.path.join(self._code, path) for path in unit.files]
            if any(map(os.path.lexists, there)):
                continue
            self._rescued.remove(unit)
            moved = self._moved(unit)
            if moved is not None:
                self._move_copy(unit, moved, known)
                continue
            for path in [unit.folder] if unit.folder else unit.files:
                self._remove_copy(path, known)
        self._rescued.append(newest)

    def _moved(self, unit: Unit) -> Optional[Unit]:
        """Where all files of a save are now; a rename changes neither their size nor their time."""
        places = {}  # type: Dict[Optional[State], str]
        for path in results.new_files(self._code, self._before):
            if not os.path.islink(os.path.join(self._code, path)):
                places[state_of(os.path.join(self._code, path))] = path
        found = [places.get(self._copied.get(path)) for path in unit.files]
        paths = [path for path in found if path is not None]
        if len(set(paths)) < len(unit.files):
            return None
        if not unit.folder:
            return Unit("", paths)
        ends = [path[len(unit.folder) :] for path in unit.files]
        folder = paths[0][: -len(ends[0])]
        return Unit(folder, paths) if paths == [folder + end for end in ends] else None

    def _move_copy(self, unit: Unit, moved: Unit, known: copied_files.Copies) -> None:
        output = os.path.join(self._carried, "output")
        pairs = [(unit.folder, moved.folder)] if unit.folder else zip(unit.files, moved.files)
        for old, new in pairs:
            place = known.place_of(old)
            target = known.choose(new, bool(unit.folder))
            if target is None:
                self._remove_copy(old, known)  # the program put the same there itself
            elif known.are_ours(old, place) and os.path.lexists(os.path.join(output, place)):
                there = os.path.join(output, target)
                os.makedirs(os.path.dirname(there), exist_ok=True)
                if unit.folder:
                    copy_files.remove_folder(there)
                os.replace(os.path.join(output, place), there)
                known.note(target)
                self._copied.update(
                    (path, self._copied[earlier])
                    for earlier, path in zip(unit.files, moved.files)
                    if path == new or unit.folder
                )
        known.remember(moved.files, moved.files)
        self._rescued.append(moved)

    def _remove_copy(self, path: str, known: copied_files.Copies) -> None:
        place = known.place_of(path)
        if not known.are_ours(path, place):
            return
        target = os.path.join(self._carried, "output", place)
        if os.path.isdir(target) and not os.path.islink(target):
            copy_files.remove_folder(target)
        else:
            files.remove_if_there(target)


def state_of(path: str) -> Optional[State]:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
