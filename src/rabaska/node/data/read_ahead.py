"""Several reads at once, their results in order: one stream of a shared file system is slow."""

import io
import os
import resource
import time
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, List, Sequence, Tuple

if TYPE_CHECKING:
    import queue

STREAMS = 8  # reads under way at once
_SLOW = 200e6  # bytes per second: what comes more slowly is read in several streams
# What other threads wait for does not count, where the system can tell.
_WHOSE = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)

_Slot = Tuple[Any, List[Any]]  # an event, and what came


class Watch:
    """Tells whether storage keeps us waiting; other work on the processor does not count."""

    def __init__(self) -> None:
        self._begun, self._waits = time.monotonic(), _waits()

    def was_slow(self, size: int) -> bool:
        """Whether so many bytes took long since the watch was made."""
        return size < _SLOW * (time.monotonic() - self._begun) and _waits() > self._waits


def _waits() -> int:
    """How often we gave up the processor by ourselves."""
    return resource.getrusage(_WHOSE).ru_nvcsw


def ahead(
    read: Callable[[Any], Any], tasks: Iterable[Any], streams: int = STREAMS
) -> Iterator[Any]:
    """`read(task)` of every task, in their order; never more than `streams` results are waiting.

    Tasks are taken only when they are begun: others may draw from the same.
    """
    left = iter(tasks)
    first = list(islice(left, streams))
    if len(first) < 2:
        yield from map(read, chain(first, left))
        return
    import queue  # only here: where storage is quick, nobody needs threads
    import threading

    queued = queue.Queue()  # type: queue.Queue[Any]
    slots = []  # type: List[_Slot]
    for _ in first:
        threading.Thread(target=_answer, args=(read, queued), daemon=True).start()

    def begin(some: Iterable[Any]) -> None:
        for task in some:
            slots.append((threading.Event(), []))
            queued.put((task, slots[-1]))

    try:
        begin(first)
        while slots:
            yield _result(slots.pop(0))
            begin(islice(left, 1))
    finally:
        _dismiss(queued, len(first))


def _answer(read: Callable[[Any], Any], queued: "queue.Queue[Any]") -> None:
    for task, (done, result) in iter(queued.get, None):
        try:
            result.append(read(task))
        except BaseException as problem:  # it is raised where the result is wanted
            result.append(_Failed(problem))
        done.set()


class _Failed:
    def __init__(self, problem: BaseException) -> None:
        self.problem = problem


def _result(slot: _Slot) -> Any:
    done, result = slot
    done.wait()
    if isinstance(result[0], _Failed):
        raise result[0].problem
    return result[0]


def _dismiss(queued: "queue.Queue[Any]", streams: int) -> None:
    """Take back what nobody began, and send the threads home."""
    with queued.mutex:
        queued.queue.clear()
    for _ in range(streams):
        queued.put(None)


Part = Tuple[int, int]  # from there on so many bytes


def windows(path: str, parts: Sequence[Part]) -> Iterator[memoryview]:
    """Each part of the file, shorter where it ends; it may change with the next one.

    One after the other into the same memory, which is quickest, until one keeps us waiting.
    """
    room = bytearray(max((size for _, size in parts), default=0))
    done, slow = 0, False
    with open(path, "rb", buffering=0) as source:
        while done < len(parts) and not slow:
            watch = Watch()
            window = _filled(source, memoryview(room), *parts[done])
            done, slow = done + 1, watch.was_slow(len(window))
            yield window
    if done < len(parts):
        yield from ahead(lambda part: _window(path, *part), parts[done:])


def _filled(source: io.RawIOBase, room: memoryview, start: int, size: int) -> memoryview:
    source.seek(start)
    filled = 0
    while filled < size:
        count = source.readinto(room[filled:size])
        if not count:
            break
        filled += count
    return room[:filled]


def _window(path: str, start: int, size: int) -> memoryview:
    # Opened anew: some file systems serve one read after the other on each descriptor.
    source = os.open(path, os.O_RDONLY)
    try:
        return memoryview(read_at(source, size, start))
    finally:
        os.close(source)


def read_at(source: int, size: int, offset: int) -> bytes:
    """So many bytes from there; fewer where the file ends."""
    content = os.pread(source, size, offset)
    while 0 < len(content) < size:
        more = os.pread(source, size - len(content), offset + len(content))
        if not more:
            break
        content += more
    return content
