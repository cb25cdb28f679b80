"""Room for a trial: space to write to, and the memory that several trials of one job share."""

import errno
import os
import time
import uuid
from typing import Callable, Dict, List, Optional, Tuple

from .. import files
from ..job import full_disk
from ..record import chain_rule, jobs
from ..record.run_folder import RunFolder
from ..vitals.gpu_process import GpuProcess

FULL = (chain_rule.DISK_FULL, chain_rule.OVER_QUOTA)
ENDED_BY_OTHERS = (
    chain_rule.KILLED,
    chain_rule.LOST,
    chain_rule.SUPERSEDED,
    chain_rule.CANCELLED,
)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_PATIENCE = 600.0  # seconds that a worker waits for space before it ends
_PROBE = 1024 * 1024  # bytes that can be written again where there is space
_PAUSE = 1.0
_YOUNG = 20.0  # seconds in which a trial may not have taken all its memory yet
_MARGIN = 1.1  # of what a trial took so far
_MEASURED = 5.0  # seconds between two looks at the memory


def is_for_space(last: Optional[jobs.Ended]) -> bool:
    """Whether a job ended for want of space, in its program or before that."""
    if last is None:
        return False
    return last.how in FULL or (
        last.how == chain_rule.STAGING_FAILED and bool(full_disk.PATTERN.search(last.reason or ""))
    )


def is_full(problem: OSError) -> bool:
    return problem.errno in _NO_SPACE


def wait_for_space(folder: str, must_stop: Callable[[], bool], patience: float = _PATIENCE) -> bool:
    """Wait until something can be written there again; False where nobody makes space."""
    until = time.monotonic() + patience
    while not must_stop():
        if _can_write(folder):
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE)
    return False


def _can_write(folder: str) -> bool:
    path = os.path.join(folder, "space." + uuid.uuid4().hex)
    try:
        files.write_whole(path, b"\1" * _PROBE)
    except OSError:
        return False
    files.remove_if_there(path)
    return True


def last_end(run: RunFolder) -> Optional[jobs.Ended]:
    """How the newest job of a run ended; None while it has none, or while that runs."""
    numbers = run.jobs()
    return jobs.read_ended(run, numbers[-1]) if numbers else None


def forgive(run: RunFolder, job_id: str) -> None:
    """Let the run go on, as `rabaska resume` does: its last job ended by no fault of its own."""
    number = "".join(letter for letter in job_id.partition("_")[0] if letter.isdigit()) or "0"
    value = {
        "submission": uuid.uuid4().hex,
        "time": time.time(),
        "jobs": 1,
        "resume": True,
        "after_job": max(run.jobs(), default=0),
        "exit_code": 0,
        "said": number,
    }
    files.append_line(run.submissions, value)


class Slots:
    """The workers of one job, which share its GPU; they know of each other by files on its node.

    open-0   worker 0 takes trials
    busy-0   and runs one, since the file was made
    peak     the most that one trial took of each GPU so far, in bytes
    ended    one of their trials came to its end, so that `peak` is worth something
    """

    def __init__(self, folder: str, slot: int = 0, *, guarded: bool = False) -> None:
        self.folder, self._slot = folder, slot
        self._gpus = GpuProcess() if guarded else None
        self._measured = 0.0

    def open(self) -> None:
        os.makedirs(self.folder, exist_ok=True)
        self.end(complete=False)  # where a worker before us was killed
        self._touch("open-{}".format(self._slot))

    def begin(self) -> None:
        self._touch("busy-{}".format(self._slot))

    def end(self, *, complete: bool) -> None:
        files.remove_if_there(self._path("busy-{}".format(self._slot)))
        if complete:
            self._touch("ended")

    def leave(self) -> None:
        for what in ("open", "busy"):
            files.remove_if_there(self._path("{}-{}".format(what, self._slot)))
        if self._gpus is not None:
            self._gpus.end()

    def close(self) -> bool:
        """Take no more trials, where another worker of this job does."""
        own = "open-{}".format(self._slot)
        files.remove_if_there(self._path(own))
        if self._named("open-"):
            return True
        self._touch(own)  # two of them closed at once
        return False

    @property
    def shared(self) -> bool:
        """Whether another worker of this job takes trials."""
        return len(self._named("open-")) > 1

    def why_wait(self) -> str:
        """Why no trial should begin on this GPU now; "" where there is room, or nobody knows."""
        busy = self._others_busy()
        if self._gpus is None or not busy:
            return ""
        use = self._gpu_use()
        if not use:
            return ""
        if not os.path.exists(self._path("ended")):
            youngest = max(_made(self._path(name)) for name in busy)
            if time.time() - youngest < _YOUNG:
                return "a trial next to it has not taken all its memory yet"
        peak = self._learn(use, len(busy))
        for name, (used, limit) in use.items():
            wanted = _MARGIN * peak.get(name, 0.0)
            if limit - used < wanted:
                said = "{} has {:.1f} GB free, and a trial takes {:.1f} GB"
                return said.format(name, (limit - used) / 1e9, wanted / 1e9)
        return ""

    def measure(self) -> None:
        """Learn what trials take, now and then."""
        now = time.monotonic()
        if self._gpus is None or now - self._measured < _MEASURED:
            return
        self._measured = now
        busy = len(self._named("busy-"))
        if busy:
            self._learn(self._gpu_use(), busy)

    def _gpu_use(self) -> Dict[str, Tuple[float, float]]:
        assert self._gpus is not None
        told = {name: value for name, unit, value in self._gpus.values() if unit == "bytes"}
        ends = " memory limit"
        names = [name[: -len(ends)] for name in told if name.endswith(ends)]
        return {
            name: (told[name + " memory"], told[name + ends])
            for name in names
            if name + " memory" in told and told[name + ends] > 0
        }

    def _learn(self, use: Dict[str, Tuple[float, float]], busy: int) -> Dict[str, float]:
        known = _numbers(self._path("peak"))
        found = {name: max(known.get(name, 0.0), used / busy) for name, (used, _) in use.items()}
        if found != known:
            files.write_json(self._path("peak"), dict(known, **found))
        return found

    def _others_busy(self) -> List[str]:
        return [one for one in self._named("busy-") if one != "busy-{}".format(self._slot)]

    def _named(self, start: str) -> List[str]:
        try:
            return [name for name in os.listdir(self.folder) if name.startswith(start)]
        except OSError:
            return []

    def _touch(self, name: str) -> None:
        with open(self._path(name), "w"):
            pass

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)


def _made(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _numbers(path: str) -> Dict[str, float]:
    try:
        value = files.read_json(path) or {}
    except (OSError, ValueError):
        return {}
    return {name: float(one) for name, one in value.items() if isinstance(one, (int, float))}
