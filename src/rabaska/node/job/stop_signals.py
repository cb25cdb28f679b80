"""What ends a job: signals, kept as a flag until something can be done, and its time limit."""

import os
import shlex
import signal
import threading
import time
from contextlib import contextmanager
from typing import Callable, Iterator, Mapping, NamedTuple, Optional

from .. import timed_command
from ..record.events import say

ASKED = ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGHUP")
# What Slurm (`--signal`) and SGE (`s_rt`, `-notify`) send ahead of the limit.
WARNINGS = ("SIGUSR1", "SIGUSR2")
_TICK = 0.5  # seconds


class Stop(NamedTuple):
    """Why the program must stop now."""

    how: str  # of `chain`
    reason: str
    at_once: bool = False  # no time to save: whatever it writes now is lost or does harm
    scheduler_ends: bool = False  # the scheduler will end the job itself, and may queue it again


class StoppedEarly(Exception):
    """Work was left because of `stop`."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.reason)
        self.stop = stop


class Interrupts:
    def __init__(self, keeper: Optional[int] = None) -> None:
        self._received = ""
        self._keeper = keeper

    def install(self) -> None:
        for name in ASKED:
            signal.signal(getattr(signal, name), self._note)

    def _note(self, number: int, frame: object) -> None:
        # A handler may run between any two instructions: it only sets a flag.
        self._received = self._received or signal.Signals(number).name

    def received(self) -> str:
        """The first signal, or that this computer's queue stopped; "" while there was none."""
        if self._received:
            return self._received
        if self._keeper is not None and os.getppid() != self._keeper:
            return "this computer's queue stopped"
        return ""


@contextmanager
def stopped_early_when(look: Callable[[], Optional[Stop]]) -> Iterator[None]:
    """Leave the block by StoppedEarly as soon as `look` sees a reason, whatever is under way."""

    def tick(number: int, frame: object) -> None:
        stop = look()
        if stop is not None:
            raise StoppedEarly(stop)

    before = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, 0.01, _TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


ASK_AGAIN = "RABASKA_ASK_END"  # a command that prints when the job ends, if there is one
_SLEPT = 1.0  # seconds; a shorter pause changes nothing
_PATIENCE = 30.0  # seconds with a scheduler that does not answer


class Deadline:
    def __init__(
        self, due: float, grace: float, slept: Callable[[], float], environment: Mapping[str, str]
    ) -> None:
        self._due = due  # by the monotonic clock
        self._grace = grace
        self._slept = slept
        self._known = slept()
        self._words = shlex.split(environment.get(ASK_AGAIN, ""))
        self._asking = None  # type: Optional[threading.Thread]

    def left(self) -> float:
        """Seconds; as many as it takes to find out, right after a suspension."""
        slept = self._slept()
        if slept - self._known > _SLEPT:
            self._known = slept
            self._ask_again()
        if self._asking is not None and self._asking.is_alive():
            return _PATIENCE
        return self._due - time.monotonic()

    def _ask_again(self) -> None:
        if not self._words:
            return
        self._asking = threading.Thread(target=self._find_out, name="deadline", daemon=True)
        self._asking.start()

    def _find_out(self) -> None:
        try:
            answer = timed_command.run(self._words, _PATIENCE, stderr=None)
            if answer.exit_code == timed_command.NO_ANSWER:
                raise OSError("{} did not answer".format(self._words[0]))
        except OSError as problem:
            say("could not ask the scheduler when this job ends: {}".format(problem))
            return
        ends = moment(answer.output.decode("utf-8", "replace"))
        if ends is not None and ends > time.time():
            self._due = time.monotonic() + ends - time.time() - self._grace


def moment(text: str) -> Optional[float]:
    """Seconds since 1970, or local time as Slurm prints it; None for anything else."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return time.mktime(time.strptime(text.strip(), "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None  # such as "N/A", or nothing where the queue did not answer
