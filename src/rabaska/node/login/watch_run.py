"""Tells whoever waits for a run as soon as its folder shows that something happened.

`watch RUNFOLDER` prints a line for each change: a job began or entered another phase, an event, an
end. The scheduler is not asked. It ends with the run, with its reader, or after a while, so that
none is left behind.
"""

import os
import sys
import time
from typing import List, Tuple

from ..record import phases
from ..record.run_folder import RunFolder
from .follow_log import Printer, is_over

LOOK = 0.5  # seconds
LONGEST = 300.0  # seconds; the reader starts another


def main(argv: List[str]) -> int:
    if len(argv) != 1 or not os.path.isdir(argv[0]):
        sys.stderr.write("usage: watch RUNFOLDER\n")
        return 2
    run = RunFolder(os.path.abspath(argv[0]))
    try:
        _watch(run, Printer(sys.stdout.buffer))
    except (BrokenPipeError, KeyboardInterrupt):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _watch(run: RunFolder, printer: Printer) -> None:
    until, seen = time.monotonic() + LONGEST, sign(run)
    printer.text("watching\n")
    while time.monotonic() < until and printer.is_heard():
        now = sign(run)
        if now != seen:
            seen = now
            printer.text("changed\n")
            if is_over(run):
                return
        time.sleep(LOOK)


def sign(run: RunFolder) -> Tuple[object, ...]:
    """What changes with each event; how far a phase is does not count."""
    holder = run.holder()
    phase = phases.read(run, holder) or {}
    sizes = tuple(_size(path) for path in (run.events, run.submissions, run.ended(holder)))
    marks = tuple(os.path.exists(path) for path in (run.done, run.stop))
    return holder, phase.get("phase"), sizes, marks, _names(run.logs)


def _size(path: str) -> int:
    """Opened anew, so that NFS asks its server."""
    try:
        with open(path, "rb") as stream:
            return os.fstat(stream.fileno()).st_size
    except OSError:
        return -1


def _names(folder: str) -> Tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(folder)))
    except OSError:
        return ()
