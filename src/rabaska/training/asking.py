"""Signals that ask the program to save and stop; all they do is set a flag."""

import signal
import threading
from types import FrameType
from typing import Any, Dict, Optional

# Slurm and rabaska send TERM or USR1; where NCCL has taken USR1, sites send USR2.
ASKING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


class Asked:
    def __init__(self) -> None:
        self.by: Optional[str] = None  # the name of the signal that came
        self._before: Dict[int, Any] = {}

    def __bool__(self) -> bool:
        return self.by is not None

    def listen(self) -> None:
        """Only the main thread may; elsewhere the deadline and the periodic saves must do."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in ASKING:
            before = signal.getsignal(number)
            if number == signal.SIGTERM or before == signal.SIG_DFL:
                self._before[number] = before
                signal.signal(number, self._note)

    def _note(self, number: int, frame: Optional[FrameType]) -> None:
        self.by = signal.Signals(number).name
        before = self._before.get(number)
        if callable(before):
            before(number, frame)

    def stop_listening(self) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._note:
                signal.signal(number, before if before is not None else signal.SIG_DFL)
        self._before.clear()


def pass_over() -> None:
    """In a data loader's worker: what is meant for the training must not end or mislead it."""
    for number in ASKING[1:]:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
