"""Every file of the queue, and the records of its jobs."""

import os
from typing import Any, Dict, List, NamedTuple, Optional

from .. import files
from . import locks

TAG = "RABASKA_JOB_TAG"  # in the environment of every process of a job
_MORE = "more-"  # begins the name of a file, one for each element added to a job


class QueuedJob(NamedTuple):
    id: int
    name: str
    time: float
    elements: int
    gpus: int
    grace: float
    output: str
    folder: str  # where it was submitted, and where it runs
    token: str  # unguessable; tags its processes and names its local folders
    slots: List[str]  # every slot of this computer: its GPU, or ""
    submitted: float
    mark: str = ""  # what its submission was called

    @property
    def need(self) -> int:
        return max(1, self.gpus)

    def element(self, number: int) -> str:
        return "{}_{}".format(self.id, number)


class Queue(NamedTuple):
    path: str

    @property
    def line(self) -> str:
        return os.path.join(self.path, "line")

    def folder(self, job: int) -> str:
        return os.path.join(self.path, "jobs", str(job))

    def file(self, job: int, name: str) -> str:
        return os.path.join(self.folder(job), name)

    def record(self, job: int) -> str:
        return self.file(job, "job.json")

    def script(self, job: int) -> str:
        return self.file(job, "script")

    def keeper(self, job: int) -> str:
        return self.file(job, "keeper")

    def marker(self, job: int) -> str:
        return os.path.join(self.path, "active", str(job))

    def jobs(self) -> List[int]:
        return _numbers(os.path.join(self.path, "jobs"))

    def active(self) -> List[int]:
        return _numbers(os.path.join(self.path, "active"))


def make(queue: Queue) -> None:
    for name in ("jobs", "active"):
        os.makedirs(os.path.join(queue.path, name), mode=0o700, exist_ok=True)


def new_id(queue: Queue) -> int:
    """A number no other job has: mkdir lets exactly one of those who ask at once have it."""
    number = max(queue.jobs(), default=0)
    while True:
        number += 1
        try:
            os.mkdir(queue.folder(number), 0o700)
        except FileExistsError:
            continue
        return number


def write_job(queue: Queue, job: QueuedJob) -> None:
    files.write_json(queue.record(job.id), dict(job._asdict()))


def read_job(queue: Queue, job: int) -> Optional[QueuedJob]:
    """The job as submitted; None when there is none, or its record cannot be read."""
    value = _readable(queue.record(job))
    try:
        return None if value is None else QueuedJob(**value)
    except TypeError:
        return None


def activate(queue: Queue, job: int) -> None:
    # An empty file is whole at once; a partial one would stay here for ever if we were killed.
    os.close(os.open(queue.marker(job), os.O_WRONLY | os.O_CREAT, 0o600))
    files.sync_folder(os.path.dirname(queue.marker(job)))


def retire(queue: Queue, job: int) -> None:
    """The job holds nothing any more and need not be looked at again."""
    files.remove_if_there(queue.marker(job))


def keeper_lives(queue: Queue, job: int) -> bool:
    return locks.is_held(queue.keeper(job))


def write_begun(queue: Queue, job: int, element: int, begun: Dict[str, Any]) -> None:
    files.write_json(queue.file(job, "{}.begun.json".format(element)), begun)


def write_ended(queue: Queue, job: int, element: int, ended: Dict[str, Any]) -> None:
    files.write_json(queue.file(job, "{}.ended.json".format(element)), ended)


def begun(queue: Queue, job: int, element: int) -> Optional[Dict[str, Any]]:
    """When and where an element began; empty when the record is there but damaged."""
    return _record(queue.file(job, "{}.begun.json".format(element)))


def ended(queue: Queue, job: int, element: int) -> Optional[Dict[str, Any]]:
    return _record(queue.file(job, "{}.ended.json".format(element)))


def running(queue: Queue, job: int) -> List[int]:
    """The elements that began and have no record of their end: one at most, while all is well."""
    names = _names(queue.folder(job))
    return sorted(
        element for element in _elements(names, "begun") if element not in _elements(names, "ended")
    )


def elements(queue: Queue, job: QueuedJob) -> int:
    """How many elements the job has: those it was submitted with, and those added since."""
    added = [name for name in _names(queue.folder(job.id)) if name.startswith(_MORE)]
    return job.elements + sum(not name.endswith(files.PARTIAL) for name in added)


def add_element(queue: Queue, job: int, mark: str) -> None:
    """One more element; saying so again with the same mark adds nothing."""
    files.write_whole(queue.file(job, _MORE + mark), "")


def marks(queue: Queue, job: QueuedJob) -> List[str]:
    """What the submission of the job was called, and those that added elements to it."""
    added = [name[len(_MORE) :] for name in _names(queue.folder(job.id)) if name.startswith(_MORE)]
    return [mark for mark in [job.mark] + added if mark and not mark.endswith(files.PARTIAL)]


def waits(queue: Queue, job: QueuedJob) -> bool:
    """Whether the job stands in line: nothing of it runs, and something is still to run."""
    names = _names(queue.folder(job.id))
    over = _elements(names, "ended")
    return not set(_elements(names, "begun")) - set(over) and len(over) < elements(queue, job)


def ask_to_cancel(queue: Queue, job: int, element: Optional[int] = None) -> None:
    files.write_whole(queue.file(job, _cancel_name(element)), "")


def cancel_asked(queue: Queue, job: int, element: int) -> bool:
    """Whether somebody asked to stop the job, or this element of it."""
    asked = (queue.file(job, _cancel_name(which)) for which in (None, element))
    return any(os.path.exists(path) for path in asked)


def _cancel_name(element: Optional[int]) -> str:
    return "cancel" if element is None else "cancel-{}".format(element)


def _elements(names: List[str], what: str) -> List[int]:
    tail = ".{}.json".format(what)
    numbers = (name[: -len(tail)] for name in names if name.endswith(tail))
    return [int(number) for number in numbers if number.isdigit()]


def _record(path: str) -> Optional[Dict[str, Any]]:
    return (_readable(path) or {}) if os.path.exists(path) else None


def _readable(path: str) -> Optional[Dict[str, Any]]:
    try:
        return files.read_json(path)
    except (OSError, ValueError):
        return None  # one bad file never hides the others; callers say that it is damaged


def _names(folder: str) -> List[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _numbers(folder: str) -> List[int]:
    return sorted(int(name) for name in _names(folder) if name.isdigit())
