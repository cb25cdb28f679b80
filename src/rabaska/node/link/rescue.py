"""Checkpoints written beside the code, brought to safety while the program still runs.

The code lies on node-local storage, which is gone after a kill. A program that saves there knows
no better, and would lose all it did.
"""

import os
import threading
from typing import Callable, Iterator, List, Optional, Tuple

from .. import files
from ..saves import checkpoints, validity
from ..saves.checkpoints import Checkpoint
from . import keep
from .snapshot import Listing

EVERY = 15.0  # seconds


def seconds() -> float:
    return float(os.environ.get("RABASKA_RESCUE_SECONDS") or EVERY)


class Rescue:
    """Copies the newest valid checkpoint beside the code to the output, now and then."""

    def __init__(self, code: str, carried: str, patterns: List[str], before: Listing) -> None:
        self._code = code
        self._carried = carried
        self._patterns = patterns
        self._before = before
        self._last = None  # type: Optional[Checkpoint]
        self._over = threading.Event()
        self._thread = None  # type: Optional[threading.Thread]

    def start(self, every: float, may_write: Callable[[], bool]) -> None:
        def keep_sweeping() -> None:
            while not self._over.wait(every):
                try:
                    if may_write():
                        self.sweep()
                except OSError:
                    pass  # tried again; what cannot be kept at the end of the link is told

        self._thread = threading.Thread(target=keep_sweeping, name="rescue", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def sweep(self) -> Optional[str]:
        """Copy the newest valid checkpoint, if it is another than the last time: its path."""
        found = self._newest()
        if found is None or found == self._last:
            return None
        source, target = os.path.join(self._code, found.path), self._kept(found)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        keep.copy_whole(source, target, still=lambda: _state(source) == found[1:])
        keep.remember(self._carried, [found.path])
        self._follow_deletion()
        self._last = found
        return found.path

    def _newest(self) -> Optional[Checkpoint]:
        for candidate in checkpoints.in_order(self._new()):
            # A file that is being written fails here, or changes while it is copied.
            if validity.check(os.path.join(self._code, candidate.path), deep=False) is None:
                return candidate
        return None

    def _new(self) -> Iterator[Checkpoint]:
        for candidate in checkpoints.candidates(self._code, self._patterns):
            # What is a link was written to the output in the first place.
            linked = os.path.islink(os.path.join(self._code, candidate.path))
            if not linked and self._before.get(candidate.path) != candidate[1:]:
                yield candidate

    def _follow_deletion(self) -> None:
        """A program that deletes old checkpoints does not want their copies either."""
        last = self._last
        if last is not None and not os.path.lexists(os.path.join(self._code, last.path)):
            files.remove_if_there(self._kept(last))

    def _kept(self, checkpoint: Checkpoint) -> str:
        return os.path.join(self._carried, "output", checkpoint.path)


def _state(path: str) -> Tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns
