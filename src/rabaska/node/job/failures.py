"""Which process of several failed first: srun ends the others, and tells of those it killed."""

import socket
from typing import NamedTuple, Optional

from .. import files
from .program import End, explained


class Failure(NamedTuple):
    host: str
    code: int
    rank: Optional[int] = None  # as srun counts; None for a launcher of several


def note(path: str, code: int, rank: Optional[str]) -> None:
    """Note that a process ended so, by itself; without room on the disk, nobody learns of it."""
    number = int(rank) if rank else None
    try:
        files.append_line(path, dict(Failure(socket.gethostname(), code, number)._asdict()))
    except OSError:
        pass


def first(path: str) -> Optional[Failure]:
    for line in files.read_lines(path):
        if isinstance(line.get("code"), int):
            return Failure(str(line.get("host")), line["code"], line.get("rank"))
    return None


def blamed(end: End, failure: Optional[Failure]) -> End:
    """How the program ended, by the process that failed first; unless it was asked to stop."""
    if failure is None or end.stop is not None:
        return end
    found = explained(failure.code, None)
    who = failure.host if failure.rank is None else "process {0.rank} on {0.host}".format(failure)
    return found._replace(reason="{} failed first: {}".format(who, found.reason))
