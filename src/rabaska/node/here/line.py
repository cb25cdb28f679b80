"""Standing in line: the oldest job that waits takes the next free slots, and nobody passes it.

Jobs are served in the order of their numbers, so a chain that was submitted first goes on with
its next element before a younger job begins.
"""

import os
import time
from typing import Any, Callable, Dict, List, Optional, Set

from .. import private
from . import locks, sweep
from . import queue as queues
from .queue import Job, Queue

_FIRST = 0.1  # seconds between two looks, for the first in line
_OTHERS = 0.3


def wait_for_slots(
    queue: Queue, job: Job, element: int, leave: Callable[[], bool]
) -> Optional[Dict[str, Any]]:
    """Wait until the element may run and return its record; None when `leave` says to go away."""
    while not leave():
        if not _is_first(queue, job):
            time.sleep(_OTHERS)
            continue
        with locks.held(queue.line):
            begun = _take(queue, job, element)
        if begun is not None:
            return begun
        time.sleep(_FIRST)
    return None


def _is_first(queue: Queue, job: Job) -> bool:
    for number in queue.active():
        if number >= job.id:
            break
        older = queues.read_job(queue, number)
        if older and queues.waits(queue, older) and queues.keeper_lives(queue, number):
            return False
    return True


def _take(queue: Queue, job: Job, element: int) -> Optional[Dict[str, Any]]:
    """Take slots and record it, if it is our turn and enough are free. We hold the line."""
    sweep.sweep(queue)
    if not _is_first(queue, job):
        return None
    taken = _taken(queue)
    free = [slot for slot in range(len(job.slots)) if slot not in taken]
    if len(free) < job.need:
        return None
    begun = _record(job, element, free[: job.need])
    queues.write_begun(queue, job.id, element, begun)
    return begun


def _taken(queue: Queue) -> Set[int]:
    """Slots in use. A dead keeper's stay so until its processes are swept away."""
    taken: Set[int] = set()
    for number in queue.active():
        for element in queues.running(queue, number):
            taken.update((queues.begun(queue, number, element) or {}).get("slots", ()))
    return taken


def _record(job: Job, element: int, slots: List[int]) -> Dict[str, Any]:
    # The local folder is named before it is made, so that a sweep finds it at any moment.
    name = "rabaska-{}-{}-{}".format(job.id, element, job.token[:12])
    now = time.time()
    return {
        "slots": slots,
        "local": os.path.join(_temporary(), name),
        "started": now,
        "ends": now + job.time if job.time else None,
    }


def _temporary() -> str:
    """The folder for temporary files, or the usual one where others could meddle with it."""
    chosen = os.environ.get("TMPDIR") or "/tmp"
    usable = os.path.isdir(chosen) and os.access(chosen, os.W_OK) and not private.danger(chosen)
    return chosen if usable else "/tmp"
