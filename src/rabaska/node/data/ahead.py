"""Several reads at once, their results in order: one stream of a shared file system is slow."""

import queue
import threading
from typing import Any, Callable, Iterator, List, Sequence, Tuple

STREAMS = 8  # reads under way at once

_Slot = Tuple[threading.Event, List[Any]]


def ahead(
    read: Callable[[Any], Any], tasks: Sequence[Any], streams: int = STREAMS
) -> Iterator[Any]:
    """`read(task)` of every task, in their order; never more than `streams` results are waiting."""
    if len(tasks) == 1:
        yield read(tasks[0])
        return
    asked = queue.Queue()  # type: queue.Queue[Any]
    slots = []  # type: List[_Slot]
    streams = min(streams, len(tasks))
    for _ in range(streams):
        threading.Thread(target=_answer, args=(read, asked), daemon=True).start()
    try:
        for number, task in enumerate(tasks):
            slot = (threading.Event(), [])  # type: _Slot
            slots.append(slot)
            asked.put((task, slot))
            if number >= streams - 1:
                yield _result(slots.pop(0))
        while slots:
            yield _result(slots.pop(0))
    finally:
        _dismiss(asked, streams)


def _answer(read: Callable[[Any], Any], asked: "queue.Queue[Any]") -> None:
    for task, (done, result) in iter(asked.get, None):
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


def _dismiss(asked: "queue.Queue[Any]", streams: int) -> None:
    """Take back what nobody began, and send the threads home."""
    try:
        while True:
            asked.get_nowait()
    except queue.Empty:
        pass
    for _ in range(streams):
        asked.put(None)
