"""How much fits where: free bytes, files and memory, quotas, and the stripes of Lustre."""

import errno
import os
import re
import socket
from contextlib import contextmanager
from typing import Iterator, List, NamedTuple, Optional, Tuple

from .. import timed_command

_PATIENCE = 10  # seconds; a quota command may wait for a file server that is down
_KIBIBYTE = 1024
_BYTES_PER_STRIPE = 256 << 20
_MOST_STRIPES = 8


class Room(NamedTuple):
    """One limit, and what it still allows."""

    limit: str  # whose words these are: "disk", "quota", …
    unit: str  # "bytes" or "files"
    free: int


def free_here(folder: str) -> List[Room]:
    """Every limit that holds for new files in `folder`, which need not exist yet."""
    place = nearest(folder)
    return list(_of_disk(place)) + list(_of_quotas(place))


def nearest(folder: str) -> str:
    """The folder itself, or the first above it that exists."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def disk_room(place: str) -> Tuple[int, Optional[int]]:
    """Bytes and files that a disk has room for; None where it does not count files."""
    status = os.statvfs(place)
    return status.f_bavail * status.f_frsize, status.f_favail if status.f_files else None


def _of_disk(place: str) -> Iterator[Room]:
    free, files = disk_room(place)
    yield Room("disk", "bytes", free)
    if files is not None:
        yield Room("disk", "files", files)


def _of_quotas(place: str) -> Iterator[Room]:
    if is_lustre(place):
        for who in (["-u", str(os.getuid())], ["-g", str(os.stat(place).st_gid)]):
            yield from read_quota("quota (lfs)", _output_of(["lfs", "quota", "-q"] + who + [place]))
    else:
        # -p prints a number for the grace period, always, so that columns keep their places.
        yield from read_quota("quota", _output_of(["quota", "-w", "-p", "-f", place]))


def read_quota(limit: str, text: str) -> Iterator[Room]:
    """The rows of `lfs quota -q` and `quota -w -p`: used, soft and hard limit, grace; twice.

    Blocks are kibibytes; a star marks what is over its soft limit, and a limit of 0 is none.
    """
    for line in text.splitlines():
        # A long file system name stands on a line of its own, so numbers are counted from the end.
        numbers = [word.rstrip("*") for word in line.split()[-8:]]
        if len(numbers) < 8 or not all(numbers[place].isdecimal() for place in (0, 1, 2, 4, 5, 6)):
            continue
        for unit, at, size in (("bytes", 0, _KIBIBYTE), ("files", 4, 1)):
            used, soft, hard = (int(number) for number in numbers[at : at + 3])
            if hard or soft:
                yield Room(limit, unit, max(0, (hard or soft) - used) * size)


@contextmanager
def named_when_full(folder: str) -> Iterator[None]:
    """For what writes below `folder` only: an error of a full disk tells which disk, and where."""
    try:
        yield
    except OSError as problem:
        if problem.errno != errno.ENOSPC:
            raise
        full = "{} on {}".format(problem.strerror, socket.gethostname())
        raise OSError(problem.errno, full, folder)


def is_lustre(place: str) -> bool:
    return _output_of(["stat", "-f", "-c", "%T", place]).strip() == "lustre"


def prepare_stripes(folder: str, largest: int) -> Optional[int]:
    """Spread the large files that will come into a Lustre folder; how many servers, or None."""
    if not is_lustre(folder):
        return None
    stripes = min(max(1, largest // _BYTES_PER_STRIPE), _MOST_STRIPES)
    _output_of(["lfs", "setstripe", "-c", str(stripes), folder])
    # A site may forbid it; then its own setting holds, and only speed is lost.
    told = _output_of(["lfs", "getstripe", "-c", "-d", folder]).strip()
    return int(told) if re.match(r"[0-9]{1,6}$", told) else stripes


def _output_of(command: List[str]) -> str:
    """What a command printed; nothing when it is not there, fails or does not answer."""
    try:
        answer = timed_command.run(command, _PATIENCE)
    except OSError:
        return ""
    return (
        ""
        if answer.exit_code == timed_command.NO_ANSWER
        else answer.output.decode("utf-8", "replace")
    )


_CGROUPS = "/sys/fs/cgroup"


def free_memory() -> int:
    """Bytes that this job could still fill; 0 where the system does not say."""
    return min([_available(), *_limits()])


def _available() -> int:
    for line in _content("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def _limits() -> Iterator[int]:
    """Every limit above this process; schedulers set them on the job, not on its steps."""
    for line in _content("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            yield from _above(_CGROUPS, path, "memory.max")
        elif controllers == "memory":
            yield from _above(os.path.join(_CGROUPS, "memory"), path, "memory.limit_in_bytes")


def _above(root: str, path: str, name: str) -> Iterator[int]:
    while path.strip("/"):
        limit = _content(os.path.join(root, path.strip("/"), name)).strip()
        if limit.isdecimal():  # otherwise "max", or nothing where we may not look
            yield int(limit)
        path = os.path.dirname(path)


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""
