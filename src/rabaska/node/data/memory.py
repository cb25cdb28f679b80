"""How much memory is left: of the computer's, and of what a scheduler allows its job."""

import os
from typing import Iterator

_CGROUPS = "/sys/fs/cgroup"


def free_memory() -> int:
    """Bytes that this job could still fill; 0 where the system does not say."""
    return min([_available(), *_limits()])


def _available() -> int:
    for line in _said("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def _limits() -> Iterator[int]:
    """Every limit above this process; schedulers set them on the job, not on its steps."""
    for line in _said("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            yield from _above(_CGROUPS, path, "memory.max")
        elif controllers == "memory":
            yield from _above(os.path.join(_CGROUPS, "memory"), path, "memory.limit_in_bytes")


def _above(root: str, path: str, name: str) -> Iterator[int]:
    while path.strip("/"):
        limit = _said(os.path.join(root, path.strip("/"), name)).strip()
        if limit.isdecimal():  # otherwise "max", or nothing where we may not look
            yield int(limit)
        path = os.path.dirname(path)


def _said(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""
