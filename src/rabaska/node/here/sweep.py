"""Clean up after keepers that died: their processes, their local folders, their slots."""

import os
import shutil
import stat
from typing import List

from .. import processes
from . import queue as queues
from .queue import TAG, Queue, QueuedJob

_GRACE = 2.0  # the agent inside the job saw its keeper vanish and is saving already


def sweep(queue: Queue) -> None:
    """Free what dead keepers still hold. The caller holds the line."""
    for number in queue.active():
        if not queues.keeper_lives(queue, number):
            job = queues.read_job(queue, number)
            if job is None or _clear(queue, job):
                queues.retire(queue, number)


def members(job: QueuedJob) -> List[int]:
    """The living processes that carry the job's tag, and those below them."""
    tagged = processes.carrying(TAG, job.token)
    return sorted({*tagged, *processes.descendants(*tagged)} - {os.getpid()})


def remove_local(path: str) -> None:
    """Remove an element's local folder, read-only folders inside included."""
    if not os.path.basename(path).startswith("rabaska-"):
        return  # a damaged record must not make us remove something else
    _make_writable(path)
    for folder, inside, _ in os.walk(path):
        for name in inside:
            _make_writable(os.path.join(folder, name))
    shutil.rmtree(path, ignore_errors=True)


def _clear(queue: Queue, job: QueuedJob) -> bool:
    """False when a process could not be ended: then its slots stay taken, as they truly are."""
    if not processes.end_all(lambda: members(job), min(job.grace, _GRACE)):
        return False
    for element in queues.running(queue, job.id):
        remove_local(str((queues.begun(queue, job.id, element) or {}).get("local", "")))
    return True


def _make_writable(folder: str) -> None:
    try:
        if not os.path.islink(folder):
            os.chmod(folder, stat.S_IRWXU)
    except OSError:
        pass  # somebody else's folder; rmtree removes what it can
