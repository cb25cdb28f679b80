"""Work shared among a few processes, each of which takes the next task when it is free."""

import gc
import os
import pickle
import select
import signal
import struct
import sys
import warnings
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

_TICKETS = 16000  # as many as fit into a pipe that nobody reads yet
_MOST_WORKERS = 64

_LENGTH = struct.Struct("<I")
_END = b"\xff" * _LENGTH.size

Work = Callable[[Any], Iterator[Any]]
Drawing = Callable[[Iterator[Any]], Iterator[Any]]


class WorkerLost(OSError):
    """A worker process was killed from outside."""


def available() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux can say
        return os.cpu_count() or 1


def share(work: Work, tasks: Sequence[Any], count: int) -> Iterator[Any]:
    """What `work(task)` yields for every task, in the order in which it comes; see `draw`."""
    return draw(lambda mine: (result for task in mine for result in work(task)), tasks, count)


def draw(work: Drawing, tasks: Sequence[Any], count: int) -> Iterator[Any]:
    """What `work(mine)` yields in each process, where going over `mine` takes the next task.

    The first exception in a worker is raised here, after the others were ended. A worker whose
    parent is gone ends at its next message.
    """
    count = max(1, min(count, len(tasks), _MOST_WORKERS))
    tickets = _tickets(min(len(tasks), _TICKETS), count)
    crew = {}  # type: Dict[int, int]
    try:
        for _ in range(count):
            pipe, pid = _begin(work, tasks, tickets, list(crew))
            crew[pipe] = pid
        yield from _messages(crew)
    finally:
        os.close(tickets)
        for pipe, pid in crew.items():
            os.close(pipe)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _tickets(count: int, crew: int) -> int:
    """A pipe that holds so many numbers, then an end for each worker; reading one takes it.

    The end is written out: another thread may fork meanwhile, and its child keep the pipe open.
    """
    reading, writing = os.pipe()
    numbers = [_LENGTH.pack(number) for number in range(count)] + [_END] * crew
    os.write(writing, b"".join(numbers))
    os.close(writing)
    return reading


def _begin(work: Drawing, tasks: Sequence[Any], tickets: int, others: List[int]) -> Tuple[int, int]:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # The child takes no lock that a thread of ours could hold, so forking is safe here.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        os.close(writing)
        return reading, pid
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C and ends us
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        gc.disable()  # looking for cycles, of which we make none, would copy memory that we share
        for pipe in [reading] + others:
            os.close(pipe)
        _run_tasks(work, tasks, tickets, writing)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)
    raise AssertionError("unreachable")


def _run_tasks(work: Drawing, tasks: Sequence[Any], tickets: int, writing: int) -> None:
    try:
        for message in work(_drawn(tasks, tickets)):
            _send(writing, message)
    except BrokenPipeError:
        return
    except Exception as problem:
        _send(writing, problem)
    else:
        _send(writing, None)


def _drawn(tasks: Sequence[Any], tickets: int) -> Iterator[Any]:
    for ticket in iter(lambda: os.read(tickets, _LENGTH.size), _END):
        # One ticket stands for several tasks when there are more tasks than tickets.
        yield from tasks[_LENGTH.unpack(ticket)[0] :: _TICKETS]


def _send(pipe: int, message: Any) -> None:
    body = pickle.dumps(message)
    rest = memoryview(_LENGTH.pack(len(body)) + body)
    while rest:
        rest = rest[os.write(pipe, rest) :]


def _messages(crew: Dict[int, int]) -> Iterator[Any]:
    """Messages of all workers until each said that it is done (None)."""
    waiting = {pipe: bytearray() for pipe in crew}
    while waiting:
        for pipe in select.select(list(waiting), [], [])[0]:
            data = os.read(pipe, 2**16)
            if not data:
                raise WorkerLost("process {} was killed".format(crew[pipe]))
            waiting[pipe] += data
            for message in _complete_messages(waiting[pipe]):
                if isinstance(message, Exception):
                    raise message
                if message is None:
                    del waiting[pipe]
                    break
                yield message


def _complete_messages(buffer: bytearray) -> Iterator[Any]:
    """Take every message that arrived whole out of `buffer`."""
    while len(buffer) >= _LENGTH.size:
        end = _LENGTH.size + _LENGTH.unpack_from(buffer)[0]
        if len(buffer) < end:
            return
        message = pickle.loads(bytes(buffer[_LENGTH.size : end]))
        del buffer[:end]
        yield message
