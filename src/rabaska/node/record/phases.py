"""What a job is doing now, and how long each phase took: jobs/NNN/phase.json, replaced at once.

    {"phase": "staging", "since": 1763440000.0, "spent": {"building the environment": 41.2},
     "what": "imagenet", "done": 52000000, "total": 140000000, "rate": 91000000.0}

It is not synced: after a crash of the node nobody asks what the job was doing.
"""

import os
import re
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from .. import files, processes
from . import field_types, jobs, metrics, scheduler_output
from .phase_names import BUILDING, KEEPING, LOADING, SAVING, STAGING, TRAINING
from .run_folder import RunFolder

__all__ = ["BUILDING", "KEEPING", "LOADING", "SAVING", "STAGING", "TRAINING", "PhaseLog"]

_SELDOM = 1.0  # seconds between two notes of how far a phase is
_LINES = 8 * 1024  # bytes
_PIP = re.compile(
    r"^\s*(?:Collecting|Downloading|Processing|Using cached|Building wheels? for(?: collected "
    r"packages:)?|Installing collected packages:|Unpacking|Linking|rabaska:)\s+(\S.*)$"
)

SHAPE = {
    "phase": str,
    "since": field_types.NUMBER,
    "spent": dict,
    "what": str,
    "done": int,
    "total": int,
    "rate": field_types.NUMBER,
}  # type: field_types.Shape


class PhaseLog:
    """Notes the phases of one job, for as long as it may write into the run."""

    def __init__(
        self, run: RunFolder, job: int, may_write: Optional[Callable[[], bool]] = None
    ) -> None:
        self._path = run.phase(job)
        self._may_write = may_write or (lambda: True)
        self._spent: Dict[str, float] = {}
        self._phase = ""
        self._entered = time.monotonic()
        self._since = time.time()
        self._noted = 0.0
        self._moving = ""  # what is on its way
        self._start = self._moved = 0.0  # when that began, and when it was last told of
        self._lock = threading.Lock()

    def spent(self, phase: str, seconds: float) -> None:
        """Count what a phase took before anybody could note it."""
        self._spent[phase] = self._spent.get(phase, 0.0) + seconds

    def enter(self, phase: str, **more: Any) -> None:
        with self._lock:
            if phase == self._phase:
                return
            self._close()
            self._phase, self._since = phase, time.time()
            self._moving, self._moved = "", 0.0
            self._write(more)

    def moved(self, what: str, done: int, total: int) -> None:
        """How far the phase is, in bytes; noted once a second at most."""
        with self._lock:
            now = time.monotonic()
            if what != self._moving:  # it began when the last one was there
                self._moving, self._start = what, self._moved or self._entered
            self._moved = now
            if now - self._noted < _SELDOM and done < total:
                return
            rate = done / max(now - self._start, 0.001)
            self._write({"what": what, "done": done, "total": total, "rate": round(rate, 1)})

    def of_these(self, phase: str, part: str, seconds: float) -> None:
        """So much of the time of a phase that is over was spent on another one."""
        with self._lock:
            seconds = min(seconds, self._spent.get(phase, 0.0))
            if seconds > 0:
                self._spent[phase] -= seconds
                self.spent(part, seconds)

    def end(self) -> None:
        """After the last phase; what each took stays."""
        with self._lock:
            self._close()
            self._phase = ""
            self._write({})

    def _close(self) -> None:
        now = time.monotonic()
        if self._phase:
            self.spent(self._phase, now - self._entered)
        self._entered = now

    def _write(self, more: files.Json) -> None:
        self._noted = time.monotonic()
        spent = {name: round(seconds, 1) for name, seconds in self._spent.items()}
        told = dict(more, phase=self._phase, since=round(self._since, 3), spent=spent)
        if not self._may_write():
            return
        partial = files.partial_name(self._path)
        try:
            with open(partial, "w", encoding="utf-8") as stream:
                stream.write(files.to_json(told) + "\n")
            os.replace(partial, self._path)
        except OSError:
            pass  # nothing depends on it


def script_seconds(since: float) -> float:
    """How long the job's script took, before it became this program `since` by the monotonic clock.

    That is its environment, mostly.
    """
    age = processes.age(os.getpid())
    return 0.0 if age is None else max(0.0, age - (time.monotonic() - since))


def read(run: RunFolder, job: int) -> Optional[files.Json]:
    try:
        value = files.read_json(run.phase(job))
    except ValueError:
        return None
    if value is None:
        return None
    told = field_types.fitting(value, SHAPE)
    spent = told.get("spent") or {}
    told["spent"] = {
        name: seconds for name, seconds in spent.items() if field_types.numbers([seconds])
    }
    return told if "phase" in told else None


def now(run: RunFolder, job: int) -> Optional[files.Json]:
    """As `read`; a program that trains, and saves just now, is saving.

    `parts` are seconds of the training so far; at the end of a job `spent` has them.
    """
    told = read(run, job)
    if told is not None and told["phase"] in (LOADING, TRAINING, SAVING):
        lines = metrics.tail(run, job)
        told["parts"] = metrics.parts(lines)
        since = metrics.saving_since(lines) if told["phase"] != SAVING else None
        if since is not None:
            return dict(told, phase=SAVING, since=since)
    return told


def starting(run: RunFolder) -> Optional[files.Json]:
    """The job whose script has begun and whose agent has not: it builds its environment."""
    begun = [jobs.read_begun(run, number) for number in run.jobs()]
    known = {one.id for one in begun if one is not None}
    found = _outputs(run)
    if not found or found[-1] in known:
        return None
    path = scheduler_output.path_of(run, found[-1])
    return {"id": found[-1], "what": _package(path)}


def restarts(run: RunFolder) -> List[str]:
    """Why the scheduler ended and queued the newest job again, each time, in words."""
    found = _outputs(run)
    return scheduler_output.restarts(run, found[-1]) if found else []


def _outputs(run: RunFolder) -> List[str]:
    """The ids of jobs that wrote to their scheduler's output, the newest last."""
    try:
        names = os.listdir(run.logs)
    except OSError:
        return []
    paths = [name for name in names if re.match(r"scheduler-.+\.out$", name)]
    paths.sort(key=lambda name: _changed(os.path.join(run.logs, name)))
    return [name[len("scheduler-") : -len(".out")] for name in paths]


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0  # removed a moment ago


def _package(path: str) -> str:
    """What pip said last that it does."""
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _LINES))
            lines = stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    found = [match.group(1) for match in map(_PIP.match, lines) if match]
    return found[-1].strip()[:80] if found else ""
