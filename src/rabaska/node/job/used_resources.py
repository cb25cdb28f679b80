"""What a job uses of its node: memory and processor time, as its cgroup and the kernel count them.

A cgroup's own peak counts files that the kernel keeps in memory and gives back when it must. So
the memory of the processes is looked at now and then instead, and the peak is the largest found.
"""

import os
import resource
import sys
import threading
import time
from typing import NamedTuple, Optional

from .. import processes
from ..files import Json
from ..record.plan import Plan
from ..vitals.cgroups import Cgroup, content, highest, in_use, kills, limited_cgroup
from . import launch
from .program_process import ProgramEnd

_FIRST_LOOK, _LOOK = 0.2, 5.0  # seconds
_FULL = 0.97  # of the limit: the kernel ends a process a few pages before it
_MUCH = 0.5  # of the limit, held by processes: the rest may be files in the kernel's cache


class MemoryUse(NamedTuple):
    peak: int = 0  # bytes; 0: nobody knows
    limit: int = 0  # bytes; 0: none is known
    kills: int = 0  # processes that the kernel ended since the job began
    full: bool = False  # the limit was reached, where the kernel does not count whom it ended


def memory_in(group: Cgroup, peak: int, kills_before: int) -> MemoryUse:
    """What became of a group whose processes were seen to hold `peak` bytes."""
    limit, counted = group.limit, kills(group)
    # Files in the cache fill the group of any job that reads much, so they do not count alone.
    full = counted is None and highest(group) >= _FULL * limit and peak >= _MUCH * limit
    killed = max(0, (counted or 0) - kills_before)
    # What was killed grew faster than anybody looks: it had reached the limit.
    return MemoryUse(limit if killed else min(peak, limit), limit, killed, full)


class UsedResources:
    """Looks at the memory of a job now and then, from the start of its program to its end.

    `shared` says that other jobs are in the same cgroup, as on this computer: then only the
    processes below this one are looked at. `elsewhere` says that the program's processes are not
    below this one, because srun has them started: then only the cgroup tells.
    """

    def __init__(self, shared: bool = False, elsewhere: bool = False) -> None:
        self._group = None if shared else limited_cgroup()
        self._elsewhere = elsewhere
        self._kills = kills(self._group) if self._group else None
        self._processor = _processor_seconds()  # the job's script has built its environment
        self._peak = 0
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_looking, name="memory", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join(timeout=1.0)

    def _keep_looking(self) -> None:
        pause = _FIRST_LOOK
        while not self._over.wait(pause):
            self._peak = max(self._peak, self._now())
            pause = min(_LOOK, 1.5 * pause)

    def _now(self) -> int:
        if self._group is not None:
            return in_use(self._group)
        if self._elsewhere:
            return 0
        return sum(_resident(pid) for pid in processes.descendants(os.getpid()))

    def memory(self) -> MemoryUse:
        """What was seen until now; what is too short for a look shows in its largest process."""
        peak = self._peak if self._elsewhere else max(self._peak, _largest_process())
        if self._group is None:
            return MemoryUse(peak)
        return memory_in(self._group, peak, self._kills or 0)

    def to_json(self) -> Json:
        """For ended.json: seconds, and bytes where they are known."""
        memory = self.memory()
        told = {
            "seconds": round(time.monotonic() - self._began, 1),
            "cores": available_cores(),
        }  # type: Json
        if not self._elsewhere:
            told["processor"] = round(_processor_seconds() - self._processor, 1)
        if memory.peak:
            told["memory"] = memory.peak
        if memory.limit:
            told["memory_limit"] = memory.limit
        return told


def available_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def _resident(pid: int) -> int:
    fields = content("/proc/{}/statm".format(pid)).split()
    return int(fields[1]) * resource.getpagesize() if len(fields) > 1 else 0


def _largest_process() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit


def _processor_seconds() -> float:
    """Of this process and of all below it that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def counted(run_plan: Plan) -> UsedResources:
    """Counting from now on."""
    here = run_plan.origin.cluster == "here"
    used = UsedResources(shared=here, elsewhere=launch.is_elsewhere(run_plan.launch))
    used.start()
    return used


def with_used(used: Optional[UsedResources], end: ProgramEnd) -> ProgramEnd:
    if used is None:
        return end
    used.end()
    return end._replace(used=used.to_json())
