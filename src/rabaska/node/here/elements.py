"""The state of each element of a job, from records and locks alone."""

import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import queue as queues
from .queue import Queue, QueuedJob

QUEUED = "QUEUED"
RUNNING = "RUNNING"
STOPPING = "STOPPING"
DONE = "DONE"
FAILED = "FAILED"
TIMEOUT = "TIMEOUT"
CANCELLED = "CANCELLED"
LOST = "LOST"
NEVER_RAN = "NEVER_RAN"
UNKNOWN = "UNKNOWN"

_GONE = "its keeper was killed, or the computer restarted"


class Element(NamedTuple):
    name: str  # "<job>_<element>", or "<job>" when not even its record can be read
    state: str
    exit_code: Optional[int] = None
    reason: str = ""
    started: Optional[float] = None
    ended: Optional[float] = None
    job_name: str = ""


def elements(queue: Queue, number: int) -> List[Element]:
    """One for each element of job `number`; none when there is no such job."""
    # Before the records: a keeper that ends in between has written them all by then.
    alive = queues.keeper_lives(queue, number)
    job = queues.read_job(queue, number)
    if job is not None:
        last = queues.elements(queue, job)
        return [_element(queue, job, element, alive) for element in range(1, last + 1)]
    if os.path.exists(queue.record(number)):
        return [Element(str(number), UNKNOWN, reason="its job.json cannot be read")]
    return []


def line_of(element: Element) -> str:
    """`here|<job>_<element>|STATE|exit|reason|started|ended|name|.`, times in seconds since 1970.

    The first word tells the line from a banner, the last that it is whole. `%`, `|` and line
    breaks in the reason and the name are written as %25, %7C and %0A.
    """
    fields = [
        "here",
        element.name,
        element.state,
        "" if element.exit_code is None else str(element.exit_code),
        _escaped(element.reason),
        _moment(element.started),
        _moment(element.ended),
        _escaped(element.job_name),
        ".",
    ]
    return "|".join(fields)


def _element(queue: Queue, job: QueuedJob, element: int, alive: bool) -> Element:
    name = job.element(element)
    ended = queues.ended(queue, job.id, element)
    begun = queues.begun(queue, job.id, element)
    started = _number(begun, "started")
    if ended is not None:
        state = str(ended.get("state", UNKNOWN))
        reason = str(ended.get("reason", "the record of its end is damaged"))
        code = ended.get("exit")
        code = code if isinstance(code, int) else None
        return Element(name, state, code, reason, started, _number(ended, "ended"), job.name)
    state, reason = _unended(queue, job, element, alive=alive, began=begun is not None)
    return Element(name, state, reason=reason, started=started, job_name=job.name)


def _unended(
    queue: Queue, job: QueuedJob, element: int, *, alive: bool, began: bool
) -> Tuple[str, str]:
    cancelled = queues.cancel_asked(queue, job.id, element)
    if alive and began:
        return (STOPPING, "it was asked to stop") if cancelled else (RUNNING, "")
    if alive:
        before = "waits for its turn" if queues.waits(queue, job) else "waits for the one before"
        return QUEUED, before
    if began:
        return LOST, _GONE
    return (CANCELLED, "before it began") if cancelled else (NEVER_RAN, _GONE)


def _number(record: Optional[Dict[str, Any]], key: str) -> Optional[float]:
    value = (record or {}).get(key)
    return float(value) if isinstance(value, (int, float)) else None


def _moment(when: Optional[float]) -> str:
    return "" if when is None else "{:.3f}".format(when)


def _escaped(text: str) -> str:
    for sign in "%|\r\n":
        text = text.replace(sign, "%{:02X}".format(ord(sign)))
    return text
