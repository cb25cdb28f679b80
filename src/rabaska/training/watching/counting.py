"""What one process of the program did so far: steps, epochs, time spent waiting for data, saves.

Called at every step of a program that did not ask for it: a microsecond each, and nothing kept
alive. A step is one of the optimizer; what a second optimizer does with the same batch is the same
step. An epoch is over when a loader is exhausted whose batches were followed by steps: those of a
validation are not.
"""

import time
from typing import Any, Callable, Dict, Optional

# Attributes that are left on the iterators of the program's loaders.
_THEN = "_rabaska_steps"  # the steps that were done when it handed out its last batch
_TRAINED = "_rabaska_trained"  # how many of its batches were handed out when a step followed
_LENGTH = "_rabaska_length"


class Count:
    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.due = 0.0  # by the clock, when the next line is to be written
        self.total: Optional[float] = None  # epochs that the program wants
        self.off = False  # something went wrong with us
        self.begin()

    def begin(self) -> None:
        """From nothing; also in a child that was forked, whose deeds are its own."""
        self.began: Optional[float] = None  # by the clock, at the first batch or step
        self.steps = 0
        self.batches = 0  # that were followed by a step
        self.epochs = 0  # that were completed
        self.batch = 0  # of the epoch under way
        self.length: Optional[int] = None  # batches in an epoch
        self.batch_size: Optional[int] = None
        self.waiting = 0.0  # seconds
        self.aside = self.off  # what comes now is not to be counted
        self.saves = 0
        self.saving = 0.0  # seconds
        self.saved: Optional[float] = None  # by the clock, when the last save was over
        self.first_epoch: Optional[int] = None  # where it began, if it says so
        self.told = False  # a framework counts the epochs itself
        self.anywhere = False  # it can save, and go on, after any step
        self._optimizer = 0
        self._handed_out = self._stepped = 0  # batches of any kind; when the last step came
        self._saved_steps = -1

    def step(self, optimizer: object) -> None:
        handed_out = self._handed_out
        if handed_out and handed_out == self._stepped and id(optimizer) != self._optimizer:
            return
        self._optimizer, self._stepped = id(optimizer), handed_out
        self.steps += 1
        if self.began is None:
            self.began = self.clock()

    def asked(self, iterator: Any) -> None:
        """Somebody wants the next batch: the last one was trained with if a step came since."""
        if getattr(iterator, _THEN, self.steps) == self.steps or self.told:
            return
        batch, before = iterator._num_yielded, getattr(iterator, _TRAINED, 0)
        if not before:
            setattr(iterator, _LENGTH, _length(iterator))
        # Before the first step, batches may have been passed over to come back to a place.
        self.batches += batch - before if before else 1
        setattr(iterator, _TRAINED, batch)
        self._place(getattr(iterator, "_index_sampler", None), batch, getattr(iterator, _LENGTH))

    def _place(self, sampler: Any, batch: int, length: Optional[int]) -> None:
        self.batch, self.length = batch, length
        self.batch_size = getattr(sampler, "batch_size", None)
        if hasattr(sampler, "epoch_of"):  # one of our own, which goes on from epoch to epoch
            epoch, self.batch, self.length = sampler.epoch_of(batch)
            self.first_epoch = epoch if self.first_epoch is None else self.first_epoch
            self.epochs = epoch - self.first_epoch
            self.anywhere = True

    def waited(self, since: float) -> None:
        """For a loader, which is no longer at work."""
        self.waiting += self.clock() - since
        self.aside = self.off
        if self.began is None:
            self.began = since

    def handed_out(self, iterator: Any) -> None:
        self._handed_out += 1
        setattr(iterator, _THEN, self.steps)

    def exhausted(self, iterator: Any) -> None:
        if getattr(iterator, _TRAINED, 0) and self.first_epoch is None:
            self.epochs += 1
            self.batch = 0
        setattr(iterator, _TRAINED, 0)  # workers that persist are iterated anew
        setattr(iterator, _THEN, self.steps)

    def save(self, seconds: float) -> None:
        """Files that are written without a step between them are one save."""
        self.saving += seconds
        self.saved = self.clock()
        if self.steps != self._saved_steps:
            self.saves += 1
            self._saved_steps = self.steps

    def line(self, now: float) -> Dict[str, Any]:
        """All of it, for metrics.jsonl; `now` is the time of day."""
        clock = self.clock()
        began = clock if self.began is None else self.began
        told: Dict[str, Any] = {
            "time": round(now, 3),
            "began": round(now - (clock - began), 3),
            "steps": self.steps,
            "batches": self.batches,
            "epochs": self.epochs,
            "batch": self.batch,
            "waiting": round(self.waiting, 4),
        }
        if self.saves and self.saved is not None:
            told.update(saves=self.saves, saving=round(self.saving, 4))
            told["saved"] = round(now - (clock - self.saved), 3)
        for name in ("length", "batch_size", "total", "first_epoch", "anywhere"):
            if getattr(self, name) not in (None, False):
                told[name] = getattr(self, name)
        return told


def _length(iterator: Any) -> Optional[int]:
    try:
        return len(iterator) or None
    except TypeError:
        return None  # a stream, whose end nobody knows
