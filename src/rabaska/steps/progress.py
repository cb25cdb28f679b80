"""How a journey tells what it does, without knowing who listens."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Reporter(Protocol):
    def step(self, text: str) -> None:
        """Something was done, or begins."""

    def moved(
        self, what: str, done: int, total: int, *, unit: str = "bytes", aside: str = ""
    ) -> None:
        """A long piece of work came further; `aside` stands beside its amounts."""

    def warn(self, text: str) -> None:
        """Something the user should know, though the work goes on."""


class SilentReporter:
    """Tells nobody."""

    def step(self, text: str) -> None: ...

    def moved(
        self, what: str, done: int, total: int, *, unit: str = "bytes", aside: str = ""
    ) -> None: ...

    def warn(self, text: str) -> None: ...


def progress_of(what: str, reporter: Reporter) -> Callable[[int, int], None]:
    """A callback for the rooms below, which know amounts but not whom to tell."""

    def moved(done: int, total: int) -> None:
        reporter.moved(what, done, total)

    return moved


@contextmanager
def report_if_slow(
    seconds: float, text: str | Callable[[], str], reporter: Reporter
) -> Iterator[None]:
    """Tell `text` if what is done meanwhile takes longer than that; it may take time to find."""
    over = threading.Event()

    def tell() -> None:
        said = text if isinstance(text, str) else text()
        if said and not over.is_set():
            reporter.step(said)

    timer = threading.Timer(seconds, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        over.set()
        timer.cancel()
