"""A thread that writes down, now and then, what a node does for a job: vitals/job-001-NODE.tsv.

Together with the process that asks the GPUs, once that has started, it spends at most a thousandth
of one core: each look is paid for before the next, whatever it costs on this node. The first few
are on credit.
"""

import os
import re
import resource
import socket
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..series.series_format import VITALS, SeriesFile
from . import cgroups, gpu_process
from .program_processes import ProgramProcesses, Sums

SHARE = 1 / 1500  # of one core; a thousandth is promised
CREDIT = 0.01  # seconds of processor time for the first looks
FIRST, SOONEST, LATEST = 0.25, 0.5, 10.0  # seconds to the next look
_OF_THE_TIME = 1 / 50

Value = Tuple[str, str, float]


def path_of(run_folder: str, job: int, host: str) -> str:
    node = re.sub(r"[^A-Za-z0-9._-]", "_", host)[:100] or "node"
    return os.path.join(run_folder, VITALS, "job-{:03d}-{}.tsv".format(job, node))


class NodeVitals:
    """The vitals of this node, from `start` to `end`.

    `tag` marks the program's processes. `shared` says that the cgroup is not the job's own.
    """

    def __init__(
        self, path: str, job: int, tag: str, local: str, shared: bool = False, gpus: bool = True
    ) -> None:
        self._file = SeriesFile(path, job, time.time())
        self._processes = ProgramProcesses(tag)
        self._tag = tag.partition("=")[0]
        self._local = local
        self._cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        self._group = None if shared else cgroups.limited_cgroup()
        self._wants_gpus = gpus and gpu_process.has_gpus(os.environ)
        self._gpus = None  # type: Optional[gpu_process.GpuProcess]
        self._counts: Dict[str, float] = {}
        self._began = self._last = time.monotonic()
        self._spent = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_looking, name="vitals", daemon=True)
        self.why_no_gpus = ""

    def start(self, may_write: Callable[[], bool] = lambda: True, quiet: Any = None) -> None:
        """`quiet` is held while a process is started."""
        self._may_write = may_write
        if self._wants_gpus:
            if quiet is None:
                self._gpus = gpu_process.GpuProcess(self._tag)
            else:
                with quiet:
                    self._gpus = gpu_process.GpuProcess(self._tag)
        self._thread.start()

    def end(self) -> Optional[int]:
        """Stop; the number of a process that a broken driver does not let end, if there is one."""
        self._over.set()
        self._thread.join(timeout=2.0)
        if self._gpus is None:
            return None
        self._gpus.end()
        return self._gpus.stuck

    @property
    def spent(self) -> float:
        """Processor seconds until now."""
        return self._spent + (self._gpus.spent if self._gpus else 0.0)

    def _keep_looking(self) -> None:
        while not self._over.wait(self.pause(time.monotonic() - self._began)):
            self._look_and_count()

    def pause(self, lasted: float) -> float:
        """Seconds until the next look is due, and paid for."""
        if not self._counts and lasted < FIRST:
            return FIRST
        due = min(LATEST, max(SOONEST, lasted * _OF_THE_TIME))
        return max(due, (self.spent - CREDIT) / SHARE - lasted)

    def _look_and_count(self) -> None:
        before = _thread_seconds()
        try:
            if self._may_write():
                self.look()
        except (OSError, ValueError, KeyError, IndexError):
            pass  # a process that ended meanwhile, or a full disk; nothing depends on it
        self._spent += _thread_seconds() - before

    def look(self) -> None:
        now, moment = time.monotonic(), time.time()
        span, self._last = max(now - self._last, 0.001), now
        values = self._of_processes(self._processes.look(), span) + self._of_memory(span)
        values += self._of_disk()
        if self._gpus is not None and not self._over.is_set():
            values += self._gpus.values(self._over.is_set)
            self.why_no_gpus = self._gpus.why
        for name, unit, value in values:
            self._file.add(name, unit, None, moment, _short(value))
        self._file.flush()

    def _of_processes(self, sums: Sums, span: float) -> List[Value]:
        first, self._counts = not self._counts, dict(self._counts, looked=1.0)
        if first and sums.processor / span > os.cpu_count():  # type: ignore[operator]
            sums = sums._replace(processor=0.0, of_workers=0.0)  # of before this began
        told = [
            ("cores used", "cores", sums.processor / span),
            ("cores lacked", "cores", sums.held_up / span),
            ("bytes read", "bytes/s", sums.read / span),
            ("bytes written", "bytes/s", sums.written / span),
            ("processes", "processes", float(sums.processes)),
            ("cores granted", "cores", float(self._cores)),
        ]
        if sums.workers or "workers" in self._counts:
            self._counts["workers"] = 1.0
            told += [
                ("cores of workers", "cores", sums.of_workers / span),
                ("cores workers lacked", "cores", sums.workers_held_up / span),
                ("workers", "processes", float(sums.workers)),
                ("workers waiting for storage", "processes", float(sums.waiting)),
            ]
        self._resident = sums.resident
        return told

    def _of_memory(self, span: float) -> List[Value]:
        told = []  # type: List[Value]
        if self._group is None:
            told.append(("memory used", "bytes", float(self._resident)))
        else:
            told.append(("memory used", "bytes", float(cgroups.in_use(self._group))))
            told.append(("memory limit", "bytes", float(self._group.limit)))
            told.append(("swap used", "bytes", float(cgroups.swapped(self._group))))
        pages = cgroups.pages_swapped_in(self._group)
        if pages is not None:
            before = self._counts.get("pages", pages)
            self._counts["pages"] = pages
            size = resource.getpagesize()
            told.append(("bytes swapped in", "bytes/s", max(0.0, pages - before) * size / span))
        return told

    def _of_disk(self) -> List[Value]:
        if not self._local:
            return []
        found = os.statvfs(self._local)
        return [("local disk free", "bytes", float(found.f_bavail * found.f_frsize))]


def started(
    run_folder: str, job: int, tag: str, local: str, shared: bool = False, **more: Any
) -> NodeVitals:
    """The vitals of this node, being written."""
    path = path_of(run_folder, job, socket.gethostname())
    vitals = NodeVitals(path, job, tag, local, shared)
    vitals.start(**more)
    return vitals


def _thread_seconds() -> float:
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


def _short(value: float) -> float:
    """Bytes without a fraction, shares and cores with three or four digits."""
    return float(round(value)) if abs(value) >= 1000 else float("{:.4g}".format(value))
