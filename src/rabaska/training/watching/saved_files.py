"""Which files the program saved, in which order: a line of saved.jsonl for each.

Read by `rabaska.node.checkpoints.save_log`, so that what the program saved last is found again
whatever the clock says, and whatever else lies beside it.
"""

import json
import os
from typing import Any, List, Mapping, Optional, Tuple

_MOST = 10_000  # lines of one process; a program that saves more often is known by its names


class SavedFiles:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._path = environment.get("RABASKA_SAVED", "")
        self._job = int(environment.get("RABASKA_JOB") or 0)
        self._places = _places(environment)
        self._left = _MOST
        self._last: Optional[Tuple[str, int]] = None

    def note(self, path: Any, steps: int) -> None:
        """Before the first step nothing is saved that a training could go on from."""
        name = getattr(path, "name", path) if hasattr(path, "write") else path
        if not self._path or not steps or self._left <= 0:
            return
        if not isinstance(name, (str, bytes, os.PathLike)):
            return  # memory, or a file without a name
        written = os.path.realpath(os.fsdecode(name))
        relative = self._relative(written)
        # What writes piece by piece to one open file says so for each of them.
        if relative is None or self._last == (written, steps):
            return
        self._last = written, steps
        self._left -= 1
        try:
            told = {"path": relative, "mtime_ns": os.stat(written).st_mtime_ns, "steps": steps}
            self._append(json.dumps(dict(told, job=self._job)) + "\n")
        except OSError:
            pass  # no space, or the run is another job's by now

    def _relative(self, written: str) -> Optional[str]:
        for folder, name in self._places:
            if written.startswith(folder + os.sep):
                inside = os.fsencode(os.path.relpath(written, folder))
                return "{}/{}".format(name, inside.decode("utf-8", "surrogateescape"))
        return None

    def _append(self, line: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.write(descriptor, line.encode("ascii"))
        finally:
            os.close(descriptor)


def _places(environment: Mapping[str, str]) -> List[Tuple[str, str]]:
    """Folders whose content outlives the job, and what each is called in what is carried."""
    local = environment.get("RABASKA_LOCAL", "")
    told = [
        (environment.get("RABASKA_OUTPUT", ""), "output"),
        (environment.get("RABASKA_CHECKPOINTS", ""), "checkpoints"),
        (local and os.path.join(local, "code"), "output"),  # what is beside it is brought there
    ]
    return [(os.path.realpath(folder), name) for folder, name in told if folder]
