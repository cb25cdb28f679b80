"""events.jsonl: what happened to a run, one JSON line each, for people and for `status`."""

import time
from typing import Any, Callable, Iterator, Optional

from .. import files
from . import field_types
from .run_folder import RunFolder


def append(run: RunFolder, job: int, event: str, **more: Any) -> None:
    line = dict(more, time=round(time.time(), 3), job=job, event=event)
    files.append_line(run.events, line)


def read(run: RunFolder) -> Iterator[files.Json]:
    lines = (field_types.fitting(line, field_types.EVENT) for line in files.read_lines(run.events))
    return (line for line in lines if "event" in line)


class EventLog:
    """Events of one job, for as long as it may write into the run.

    An event that cannot be written is said aloud instead: a full disk must not end a training
    that still runs.
    """

    def __init__(
        self, run: RunFolder, job: int, may_write: Optional[Callable[[], bool]] = None
    ) -> None:
        self.run = run
        self.job = job
        self._may_write = may_write or (lambda: True)

    def note(self, event: str, **more: Any) -> None:
        if not self._may_write():
            return
        try:
            append(self.run, self.job, event, **more)
        except OSError as problem:
            say("could not record the event `{}`: {}".format(event, problem))


def say(text: str) -> None:
    """One plain line to the job's own output, which schedulers keep."""
    try:
        print("rabaska: {}".format(text), flush=True)
    except OSError:
        pass  # the job's output may lie on the disk that is full
