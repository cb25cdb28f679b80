"""Asking clusters again and again, each in a thread of its own, less often the longer it goes."""

import threading
import time
from collections import deque
from collections.abc import Callable

from rabaska.journeys.watch import next_pause

_MINUTE = 60.0
_AT_ONCE = 0.2  # seconds, while more numbers wait than one answer holds


class Poller:
    """Asks one cluster until it is ended; `ask` says whether more is to come."""

    def __init__(self, cluster: str, ask: Callable[[str], bool], *, here: bool) -> None:
        self.cluster = cluster
        self._ask, self._here = ask, here
        self._woken, self._over = threading.Event(), threading.Event()
        self._pause = 0.0
        self.is_asking = False

    def start(self) -> None:
        threading.Thread(target=self._keep_asking, name=f"ask {self.cluster}", daemon=True).start()

    def attend(self) -> None:
        """Somebody is there: ask often again, but not at once."""
        self._pause = 0.0

    def wake(self) -> None:
        self._pause = 0.0
        self._woken.set()

    def end(self) -> None:
        self._over.set()
        self._woken.set()

    def _keep_asking(self) -> None:
        while not self._over.is_set():
            self._woken.clear()
            self.is_asking, began = True, time.monotonic()
            more = self._ask(self.cluster)
            self.is_asking, took = False, time.monotonic() - began
            self._pause = next_pause(self._pause, here=self._here, took=took)
            self._woken.wait(_AT_ONCE if more else self._pause)


class Traffic:
    """How many bytes moved in the last minute, from a counter that only grows."""

    def __init__(self, counter: Callable[[], int]) -> None:
        self._counter = counter
        self._past: deque[tuple[float, int]] = deque()

    def per_minute(self, now: float) -> int:
        count = self._counter()
        self._past.append((now, count))
        while len(self._past) > 1 and now - self._past[0][0] > _MINUTE:
            self._past.popleft()
        began, before = self._past[0]
        lasted = max(now - began, 10.0)  # of a moment, nothing can be said
        return round((count - before) * _MINUTE / max(lasted, 1.0)) if count > before else 0
