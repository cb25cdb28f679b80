"""The cgroup of a job: its memory limit, and what its processes hold of it (versions 1 and 2)."""

import os
from typing import Dict, Iterator, NamedTuple, Optional

_CGROUPS = "/sys/fs/cgroup"
_OWN = "/proc/self/cgroup"
_UNLIMITED = 2**60  # version 1 writes about 2**63 where there is no limit


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
    for line in content(own).splitlines():
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
        text = content(os.path.join(folder, name)).strip()
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
        return fields(os.path.join(group.path, "memory.events")).get("oom_kill")
    folders = [folder for folder, _, _ in os.walk(group.path)]
    counts = [fields(os.path.join(folder, "memory.oom_control")) for folder in folders]
    return sum(one.get("oom_kill", 0) for one in counts) if "oom_kill" in counts[0] else None


def in_use(group: Cgroup) -> int:
    """Bytes that the group's processes hold, without files that the kernel could drop."""
    stat = fields(os.path.join(group.path, "memory.stat"))
    if group.version == 2:
        return stat.get("anon", 0) + stat.get("shmem", 0)
    return stat.get("total_rss", 0) + stat.get("total_shmem", 0)


def highest(group: Cgroup) -> int:
    """Bytes that the group ever held, files in the kernel's cache included."""
    name = "memory.peak" if group.version == 2 else "memory.max_usage_in_bytes"
    text = content(os.path.join(group.path, name)).strip()
    return int(text) if text.isdecimal() else 0


def fields(path: str) -> Dict[str, int]:
    """`oom_kill 3`, a line each."""
    lines = [line.split() for line in content(path).splitlines()]
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}


def content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def swapped(group: Cgroup) -> int:
    """Bytes of the group's processes that lie on the swap disk."""
    if group.version == 2:
        text = content(os.path.join(group.path, "memory.swap.current")).strip()
        return int(text) if text.isdecimal() else 0
    return fields(os.path.join(group.path, "memory.stat")).get("total_swap", 0)


def pages_swapped_in(group: Optional[Cgroup], vmstat: str = "/proc/vmstat") -> Optional[int]:
    """Pages read back from swap so far: by the group where it counts them, else by the node."""
    own = fields(os.path.join(group.path, "memory.stat")).get("pswpin") if group else None
    return fields(vmstat).get("pswpin") if own is None else own
