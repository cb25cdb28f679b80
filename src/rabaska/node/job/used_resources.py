"""What a job uses of its node: memory and processor time, as its cgroup and the kernel count them.

A cgroup's own peak counts files that the kernel keeps in memory and gives back when it must. So
the memory of the processes is looked at now and then instead, and the peak is the largest found.
"""

import os
import resource
import sys
import threading
import time
from typing import Dict, Iterator, NamedTuple, Optional

from .. import processes
from ..files import Json

_CGROUPS = "/sys/fs/cgroup"
_OWN = "/proc/self/cgroup"
_UNLIMITED = 2**60  # version 1 writes about 2**63 where there is no limit
_FIRST_LOOK, _LOOK = 0.2, 5.0  # seconds
_FULL = 0.97  # of the limit: the kernel ends a process a few pages before it
_MUCH = 0.5  # of the limit, held by processes: the rest may be files in the kernel's cache


class Cgroup(NamedTuple):
    """A group of processes for which the kernel counts memory."""

    path: str
    version: int
    limit: int  # bytes


def limited_cgroup(root: str = _CGROUPS, own: str = _OWN) -> Optional[Cgroup]:
    """The group with the lowest memory limit above this process: its job's; None without one.

    Of several with this limit the outermost: Slurm gives it to each step too, and the program may
    be in another step than this process.
    """
    found = list(_limited(root, own))
    return min(found, key=lambda group: (group.limit, len(group.path))) if found else None


def _limited(root: str, own: str) -> Iterator[Cgroup]:
    for line in _content(own).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            yield from _above(root, path, 2, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _above(os.path.join(root, "memory"), path, 1, "memory.limit_in_bytes")


def _above(root: str, path: str, version: int, name: str) -> Iterator[Cgroup]:
    shown = _shown(root, path)
    parts = shown.strip("/").split("/") if shown.strip("/") else []
    # The root of a machine has no limit; that of a namespace is the group of a container, or a job.
    for depth in range(len(parts), -1 if shown != path else 0, -1):
        folder = os.path.join(root, *parts[:depth])
        text = _content(os.path.join(folder, name)).strip()
        if text.isdecimal() and int(text) < _UNLIMITED:
            yield Cgroup(folder, version, int(text))


def _shown(root: str, path: str) -> str:
    """The path as it is mounted here: in a container the first names of it may be missing."""
    left = path
    while left.strip("/") and not os.path.isdir(os.path.join(root, left.strip("/"))):
        left = "/" + left.strip("/").partition("/")[2]
    return left


def kills(group: Cgroup) -> Optional[int]:
    """Processes that the kernel ended in the group, and in those below it, for want of memory.

    None where it does not count them: before Linux 4.13.
    """
    if group.version == 2:  # counts those below as well
        return _fields(os.path.join(group.path, "memory.events")).get("oom_kill")
    folders = [folder for folder, _, _ in os.walk(group.path)]
    counts = [_fields(os.path.join(folder, "memory.oom_control")) for folder in folders]
    return sum(one.get("oom_kill", 0) for one in counts) if "oom_kill" in counts[0] else None


def in_use(group: Cgroup) -> int:
    """Bytes that the group's processes hold, without files that the kernel could drop."""
    stat = _fields(os.path.join(group.path, "memory.stat"))
    if group.version == 2:
        return stat.get("anon", 0) + stat.get("shmem", 0)
    return stat.get("total_rss", 0) + stat.get("total_shmem", 0)


def highest(group: Cgroup) -> int:
    """Bytes that the group ever held, files in the kernel's cache included."""
    name = "memory.peak" if group.version == 2 else "memory.max_usage_in_bytes"
    text = _content(os.path.join(group.path, name)).strip()
    return int(text) if text.isdecimal() else 0


def _fields(path: str) -> Dict[str, int]:
    """`oom_kill 3`, a line each."""
    lines = [line.split() for line in _content(path).splitlines()]
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


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
    fields = _content("/proc/{}/statm".format(pid)).split()
    return int(fields[1]) * resource.getpagesize() if len(fields) > 1 else 0


def _largest_process() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit


def _processor_seconds() -> float:
    """Of this process and of all below it that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
