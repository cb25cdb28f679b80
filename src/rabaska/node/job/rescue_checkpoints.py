"""Checkpoints written beside the code, brought to safety while the program still runs.

The code lies on node-local storage, which is gone after a kill. A program that saves there knows
no better, and would lose all it did. The newest save comes first, with all that belongs to it; then
small new files, such as a table of losses.
"""

import errno
import os
import threading
import time
from typing import Callable, Dict, Iterator, List, Optional, Set, Tuple

from ..checkpoints import newest_checkpoint, order, save_slots, save_units, validity
from ..checkpoints.order import Candidate
from ..checkpoints.save_units import Unit
from . import copied_files, copy_files, results
from .rescued_saves import RescuedSaves, State, state_of
from .unpacked_code import Listing

EVERY = 15.0  # seconds
SMALL = 1 << 20  # bytes
EVENTS = 16 << 20  # bytes of a file that TensorBoard reads meanwhile
_QUIET = 1.0  # seconds for which a folder that nobody finishes by a mark must stay the same
_TRIES = 3  # in one sweep, with a save that changes while it is copied
_MISSED = 3  # sweeps in a row, after which it is said
_CUT_SHORT = "part of it is incomplete; the earlier copy is kept"
# Of saves, and no pattern of single checkpoints.
_PARTS = ["*.bin", "*.npy", "*.tar", "*.msgpack", "*.pickle", "*.pdopt", "*.tmp", "*.partial"]
_SPARE = 1.5  # how much longer than the last time a copy may take

Report = Callable[[str, str], None]  # path, why it could not be rescued


def seconds() -> float:
    return float(os.environ.get("RABASKA_RESCUE_SECONDS") or EVERY)


class Rescue:
    """Copies the newest valid checkpoint beside the code to the output, now and then."""

    def __init__(
        self,
        code: str,
        carried: str,
        patterns: List[str],
        before: Listing,
        report: Report = lambda path, why: None,
        said: copied_files.Notify = copied_files.ignored,
    ) -> None:
        self._code = code
        self._carried = carried
        self._patterns = patterns
        self._before = before
        self._report = report
        self._said = said
        self._copied = {}  # type: Dict[str, State]
        self._half: Set[str] = set()  # parts of saves that are being written
        self._logged: Set[str] = set()  # folders in which a log grows: they are not one save
        self._skipped = None  # type: Optional[OSError]
        self._kept = RescuedSaves(code, carried, before, self._copied)
        self._missed = 0
        self._took = 0.0  # seconds, for the last save
        self._over = threading.Event()
        self._thread = None  # type: Optional[threading.Thread]

    def start(self, every: float, may_write: Callable[[], bool]) -> None:
        def keep_sweeping() -> None:
            while not self._over.wait(every):
                if may_write():
                    self.sweep(quiet=min(_QUIET, every))

        self._thread = threading.Thread(target=keep_sweeping, name="rescue", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop: a copy under way is broken off, because the last one has a better order."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def needed(self) -> float:
        """Seconds that copying one more save may take, after the program's end."""
        return self._took * _SPARE

    def sweep(self, quiet: float = 0.0) -> Optional[str]:
        """Copy the newest save, if it is another than the last time: what was chosen of it."""
        path = ""
        try:
            for _ in range(_TRIES):
                try:
                    path = self._sweep(quiet) or ""
                    break
                except copy_files.Changed as problem:
                    failed = problem  # type: OSError
            else:
                raise failed
            self._copy_small()
            if self._skipped is not None and not path:
                raise self._skipped
            self._missed = 0
        except copy_files.OutOfTime:
            pass  # the program is over: what it left is kept in another way
        except OSError as problem:
            self._missed += 1
            if self._missed == _MISSED:
                why = problem.strerror or str(problem)
                self._report(os.path.relpath(problem.filename or self._code, self._code), why)
        return path or None

    def _sweep(self, quiet: float) -> Optional[str]:
        self._half, self._skipped = set(), None
        known = self._folders()
        found = list(self._new())
        watched = save_slots.beside_code(save_slots.read(self._carried))
        for chosen in order.in_order(found, watched):
            # A file that is being written fails here, or changes while it is copied.
            if self._is_damaged(chosen.path):
                continue
            unit = save_units.unit_of(chosen, found, self._code, known)
            if self._is_half_written(unit):
                self._half.update(unit.files)
                self._skip(unit, _CUT_SHORT)
                continue
            now = self._states(unit)
            if all(self._copied.get(path) == state for path, state in now.items()):
                break
            marked = chosen.path == unit.folder
            quiet_now, logs = True, []  # type: bool, List[str]
            if unit.folder and not marked:
                quiet_now, logs = self._watch(unit, now, quiet)
            if logs:
                self._logged.add(unit.folder)
                return self._sweep(quiet)
            if not quiet_now:
                self._skip(unit, copy_files.CHANGED)
                continue
            self._copy(unit, now)
            self._kept.follow(unit, self._known())
            return chosen.path
        return None

    def _is_damaged(self, path: str) -> bool:
        try:
            return validity.check(os.path.join(self._code, path), deep=False) is not None
        except OSError:
            return True  # replaced or deleted since it was listed

    def _is_half_written(self, unit: Unit) -> bool:
        """Whether a part of it would replace a valid one: the older parts belong together."""
        known, saves = self._known(), results.Saves(self._patterns)
        parts = [unit] if unit.folder else [Unit("", [path]) for path in unit.files]
        try:
            return any(
                saves.damage(self._code, part) is not None
                and results.replaces_valid(self._carried, part, known, saves)
                for part in parts
            )
        except OSError:
            return True  # replaced or deleted since it was listed

    def _new(self) -> Iterator[Candidate]:
        for one in newest_checkpoint.everything(self._code, self._patterns):
            path = os.path.join(self._code, one.path)
            if os.path.isdir(path):
                if any(
                    self._is_new(os.path.join(one.path, name)) for name in copy_files.states(path)
                ):
                    yield one
            elif self._is_new(one.path):
                yield one

    def _is_new(self, path: str) -> bool:
        """Not as it was before; what is a link was written to the output in the first place."""
        there = os.path.join(self._code, path)
        return not os.path.islink(there) and self._before.get(path) != state_of(there)

    def _states(self, unit: Unit) -> Dict[str, Optional[State]]:
        return {path: state_of(os.path.join(self._code, path)) for path in unit.files}

    def _skip(self, unit: Unit, why: str) -> None:
        """An older save is tried; that the newest was skipped is said if it lasts."""
        path = os.path.join(self._code, unit.folder or unit.files[0])
        self._skipped = self._skipped or copy_files.Changed(errno.EBUSY, why, path)

    def _watch(
        self, unit: Unit, before: Dict[str, Optional[State]], quiet: float
    ) -> Tuple[bool, List[str]]:
        """Whether a folder stays as it was for so long, and which logs grow in it."""
        inside = os.path.join(self._code, unit.folder)
        first = copy_files.states(inside)
        if quiet:
            self._over.wait(quiet)
        now = copy_files.states(inside)
        names = {os.path.join(unit.folder, name) for name in now}
        is_quiet = names == set(before) and self._states(unit) == before
        saves = self._patterns + newest_checkpoint.DEFAULT_PATTERNS + _PARTS
        grown = [name for name in now if _grew(first.get(name), now[name])]
        return is_quiet, [name for name in grown if not newest_checkpoint.matches(name, saves)]

    def _folders(self) -> save_units.Known:
        known = save_units.known(self._code)
        return known._replace(mixed=known.mixed.union(self._logged))

    def _copy(self, unit: Unit, now: Dict[str, Optional[State]]) -> None:
        began = time.monotonic()
        known = self._known()
        for path in [unit.folder] if unit.folder else unit.files:
            self._copy_one(path, known, bool(unit.folder))
        known.remember(unit.files, unit.files)
        self._copied.update((path, state) for path, state in now.items() if state is not None)
        self._took = time.monotonic() - began

    def _known(self) -> copied_files.Copies:
        return copied_files.Copies(self._code, self._carried, self._said)

    def _copy_one(self, path: str, known: copied_files.Copies, is_folder: bool = False) -> None:
        output = os.path.join(self._carried, "output")
        results.copy_unit(self._code, output, path, self._going, known, is_folder)

    def _going(self) -> bool:
        return not self._over.is_set()

    def _copy_small(self) -> None:
        """Small files that are new since the last time; a large one waits for the end."""
        copied, folders = [], self._folders()
        known = self._known()
        new = list(results.new_files(self._code, self._before))
        for path in sorted(new, key=self._is_link):  # after what they lead to
            state = state_of(os.path.join(self._code, path))
            if self._is_link(path):
                if not self._leads_to_copy(path):
                    continue
            elif state is not None and state[0] > (EVENTS if "tfevents" in path else SMALL):
                continue
            if state is None or self._copied.get(path) == state:
                continue
            if save_units.root(path, folders) or path in self._half:
                continue  # what is one save comes complete, and not file by file
            if newest_checkpoint.matches(path, self._patterns) and self._is_damaged(path):
                continue  # it is being written
            try:
                self._copy_one(path, known)
            except copy_files.Changed:
                continue  # it is being written to
            self._copied[path] = state
            copied.append(path)
        if copied:
            known.remember(copied, results.Saves(self._patterns).among(copied, folders))

    def _is_link(self, path: str) -> bool:
        return os.path.islink(os.path.join(self._code, path))

    def _leads_to_copy(self, link: str) -> bool:
        """Whether what a link leads to is rescued as it is now, or came with the code."""
        target = results.leads_inside(self._code, link) or ""
        there = os.path.join(self._code, target)
        inside = [target]
        if os.path.isdir(there):
            inside = [os.path.join(target, name) for name in copy_files.states(there)]
        states = {path: state_of(os.path.join(self._code, path)) for path in inside}
        return bool(states) and all(
            state in (self._copied.get(path), self._before.get(path))
            for path, state in states.items()
            if state is not None
        )


def _grew(before: Optional[copy_files.State], now: copy_files.State) -> bool:
    """Whether it is the same file with more in it; one of a newer save is another."""
    return before is not None and before[0] == now[0] and before[1] < now[1]
