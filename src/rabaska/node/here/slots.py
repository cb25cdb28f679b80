"""The places of this computer that jobs run in, and what ended jobs leave there."""

import os
import re
import shutil
import stat
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set

from .. import files, private_files, processes, timed_command
from . import locks
from . import queue as queues
from .directives import Refused
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


_FIRST = 0.1  # seconds between two looks, for the first in line
_OTHERS = 0.3


def wait_for_slots(
    queue: Queue, job: QueuedJob, element: int, give_up: Callable[[], bool]
) -> Optional[Dict[str, Any]]:
    """Wait until the element may run and return its record; None when `give_up` says to go away."""
    while not give_up():
        if not _is_first(queue, job):
            time.sleep(_OTHERS)
            continue
        with locks.held(queue.line):
            begun = _take(queue, job, element)
        if begun is not None:
            return begun
        time.sleep(_FIRST)
    return None


def _is_first(queue: Queue, job: QueuedJob) -> bool:
    for number in queue.active():
        if number >= job.id:
            break
        older = queues.read_job(queue, number)
        if older and queues.waits(queue, older) and queues.keeper_lives(queue, number):
            return False
    return True


def _take(queue: Queue, job: QueuedJob, element: int) -> Optional[Dict[str, Any]]:
    """Take slots and record it, if it is our turn and enough are free. We hold the line."""
    sweep(queue)
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


def _record(job: QueuedJob, element: int, slots: List[int]) -> Dict[str, Any]:
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
    usable = (
        os.path.isdir(chosen) and os.access(chosen, os.W_OK) and not private_files.danger(chosen)
    )
    return chosen if usable else "/tmp"


_ASKING = 20.0  # seconds nvidia-smi may take; with a broken driver it never answers


class Capacity(NamedTuple):
    slots: int
    gpus: List[str]  # as CUDA_VISIBLE_DEVICES names them

    def gpu(self, slot: int) -> str:
        """The GPU of a slot; with more slots than GPUs, several slots share one."""
        return self.gpus[slot % len(self.gpus)] if self.gpus else ""


def capacity(queue: str) -> Capacity:
    """What may run at once: RABASKA_SLOTS, else <queue>/capacity.json, else what is found.

    capacity.json may say {"slots": 2}, and {"gpus": ["0", "2"]} to keep GPUs out of it.
    """
    configured = _configured(os.path.join(queue, "capacity.json"))
    gpus = configured["gpus"] if "gpus" in configured else found_gpus()
    slots = os.environ.get("RABASKA_SLOTS") or configured.get("slots") or len(gpus) or 1
    try:
        return Capacity(_at_least_one(slots), [str(gpu) for gpu in gpus])
    except (TypeError, ValueError):
        raise Refused("the number of slots is {!r}; it must be 1 or more".format(slots))


def check(machine: Capacity, gpus: int) -> None:
    """Refused when a job that asks for `gpus` could never start."""
    if gpus > len(machine.gpus):
        there = (
            "there is {}".format(len(machine.gpus)) if machine.gpus else "this computer has none"
        )
        raise Refused("the job asks for {} GPU(s), and {}".format(gpus, there))
    if gpus > machine.slots:
        raise Refused(
            "the job asks for {} GPUs, and {} slot(s) may run".format(gpus, machine.slots)
        )


def found_gpus() -> List[str]:
    """The numbers of the GPUs that nvidia-smi lists; none when it cannot be asked."""
    try:
        listed = timed_command.run(["nvidia-smi", "-L"], _ASKING)
    except OSError:
        return []
    if listed.exit_code != 0:
        return []
    return re.findall(r"^GPU (\d+):", listed.output.decode("utf-8", "replace"), re.MULTILINE)


def _at_least_one(slots: Any) -> int:
    if int(slots) < 1:
        raise ValueError(slots)
    return int(slots)


def _configured(path: str) -> files.Json:
    try:
        return files.read_json(path) or {}
    except ValueError as problem:
        raise Refused("{} is not JSON: {}".format(path, problem))
