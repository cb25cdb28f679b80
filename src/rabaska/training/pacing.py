"""When a session saves, and when it stops: decided by all ranks together, after the same step."""

import time
from datetime import timedelta
from typing import List, Tuple, Union

from rabaska.training import asking, timing
from rabaska.training.crew import Crew

_LOOK_EVERY = 1.0  # seconds between two questions to the other ranks

SaveEvery = Union[None, int, timedelta]


class Pace:
    def __init__(self, save_every: SaveEvery, crew: Crew) -> None:
        self._save_every = save_every
        self._crew = crew
        self._asked = asking.Asked()
        self._deadline = timing.counted(timing.own_deadline(), time.time(), time.monotonic())
        self._saved_at = self._stepped_at = time.monotonic()
        self._step_took = 0.0  # seconds
        self._cost = 0.0  # seconds that the last save took from the training
        self._look_at = 0  # the step at which all ranks compare notes again
        self._asked.listen()

    def stepped(self) -> None:
        now = time.monotonic()
        self._step_took, self._stepped_at = now - self._stepped_at, now

    def saved(self, began: float) -> None:
        self._saved_at = time.monotonic()
        self._cost = self._saved_at - began

    def wishes(self, steps: int, writing: float, busy: bool) -> Tuple[bool, bool]:
        """Whether to save after step number `steps`, and whether to stop.

        `writing` are the seconds that the last checkpoint took in the background; nobody asks for
        another by the clock while the writer is `busy`.
        """
        by_count = isinstance(self._save_every, int) and steps % self._save_every == 0
        if steps < self._look_at:
            return by_count, False
        pause = max(1, int(_LOOK_EVERY / max(self._step_took, 1e-6)))
        by_clock, stop, pause = self._crew.agree(self._own(writing, busy, pause))
        self._look_at = steps + (pause if self._crew.size > 1 else 1)
        return by_count or bool(by_clock), bool(stop)

    def _own(self, writing: float, busy: bool, pause: int) -> List[int]:
        """What this rank wishes; the first one has the clock."""
        if not self._crew.first:
            return [0, int(self._must_stop(writing)), 0]
        return [int(not busy and self._by_clock(writing)), int(self._must_stop(writing)), pause]

    def _by_clock(self, writing: float) -> bool:
        every = self._save_every
        if isinstance(every, int):
            return False
        seconds = timing.interval(self._cost, writing=writing)
        if every is not None:
            seconds = every.total_seconds()
        return time.monotonic() - self._saved_at >= seconds

    def _must_stop(self, writing: float) -> bool:
        return bool(self._asked) or timing.time_to_stop(
            time.monotonic(), self._deadline, self._cost + writing, self._step_took
        )

    def why_it_stops(self) -> str:
        return "asked by {}".format(self._asked.by) if self._asked else "the time is nearly over"

    def end(self) -> None:
        self._asked.stop_listening()
