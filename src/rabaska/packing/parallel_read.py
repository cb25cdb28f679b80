"""Many files at once, for storage that answers slowly but answers many."""

import resource
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby, zip_longest
from typing import Generic, TypeVar

T = TypeVar("T")

_THREADS = 64
_CHUNK = 8
_MANY = 8192  # files that are asked for before the first of them is wanted
_MOST_BYTES = 64 * 2**20  # held at once, about

_Reads = list[tuple[int, list[bytes], Future[list[T]]]]  # in the order of places


class ParallelReader(Generic[T]):
    """Reads chunks of names with `read`, and hands over in order what it found."""

    def __init__(self, read: Callable[[list[bytes]], list[T]], size: Callable[[T], int]) -> None:
        self._read = read
        self._size = size
        self._held = 0  # bytes that nobody has asked for yet
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_THREADS)
        _allow_open_files(2 * _THREADS * _CHUNK)

    def results(self, names: list[bytes]) -> Iterator[T]:
        """What was read of every chunk; those that come after are read meanwhile."""
        groups: deque[_Reads[T]] = deque()
        try:
            for begin in range(0, len(names), _MANY):
                groups.append(self._submitted(names[begin : begin + _MANY]))
                if len(groups) > 1:
                    yield from self._answers(groups.popleft())
            for group in groups:
                yield from self._answers(group)
        finally:
            self._pool.shutdown(cancel_futures=True)

    def _submitted(self, names: list[bytes]) -> _Reads[T]:
        reads = [
            (place, chunk, self._pool.submit(self._ahead, chunk))
            for place, chunk in read_parallel(names)
        ]
        return sorted(reads, key=lambda read: read[0])

    def _ahead(self, chunk: list[bytes]) -> list[T]:
        """Nothing when too much is held already: it is read when its turn comes."""
        if self._held > _MOST_BYTES:
            return []
        results = self._read(chunk)
        with self._lock:
            self._held += sum(map(self._size, results))
        return results

    def _answers(self, reads: _Reads[T]) -> Iterator[T]:
        for _, chunk, future in reads:
            results = future.result()
            with self._lock:
                self._held -= sum(map(self._size, results))
            yield from results or self._read(chunk)


def _allow_open_files(count: int) -> None:
    """Raise the limit of this process to `count`, or as near as it may: macOS begins with 256."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def read_parallel(names: Iterable[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """A few neighbours and the place of the first, from each folder in turn.

    File systems look names up one by one within a folder, but in several folders at once.
    """
    folders, begin = [], 0
    for _, group in groupby(names, lambda name: name.rpartition(b"/")[0]):
        folder = list(group)
        folders.append(
            [
                (begin + place, folder[place : place + _CHUNK])
                for place in range(0, len(folder), _CHUNK)
            ]
        )
        begin += len(folder)
    for turn in zip_longest(*folders):
        yield from (chunk for chunk in turn if chunk)
