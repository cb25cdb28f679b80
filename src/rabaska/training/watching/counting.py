"""What one process of the program did so far: steps, epochs, saves, and where its time went.

Called at every step of a program that did not ask for it: a microsecond each, and nothing kept
alive. A step is one of the optimizer; what a second optimizer does with the same batch is the same
step. An epoch is over when a loader is exhausted, or left after its last batch, whose batches were
followed by steps: those of a validation are not."""

import json
import os
import sys
import time
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

_NO_END = 10**9  # samples: who asks a sampler for more wants to be asked to stop


class Sweep:
    """One iteration over a loader; it stays with the iterator, which is the program's own."""

    __slots__ = ("began", "first", "handed_out", "length", "sampler", "started", "then", "waited")

    def __init__(self, iterator: Any, steps: int, began: float, waited: float) -> None:
        self.began = began  # by the clock, the start of its workers included
        self.waited = waited  # seconds
        self.started = 0.0  # seconds of it in which workers were started
        self.sampler: Any = getattr(iterator, "_index_sampler", None)
        self.length = _length(iterator, self.sampler)  # batches
        self.handed_out: int = iterator._num_yielded
        self.first = 0  # the batch that was first trained with, from 1
        self.then = steps  # that were done when it handed out its last batch


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
        self.starting = 0.0  # seconds of it in which workers were started
        self.fetching = 0.0  # seconds of it, without workers, that this thread had the processor
        self.validating = 0.0  # seconds, what it waited for included
        self.logging = 0.0  # seconds
        self.forward = 0.0  # seconds from a batch to the backward pass, of several processes
        self.workers: Optional[int] = None  # of the loader that was last begun
        self.handed = 0.0  # by the clock, when the last batch was
        self.begun = (0, 0.0)  # an iterator that was just made, and the seconds that took
        self.aside = self.off  # what comes now is not to be counted
        self.saves = 0
        self.saving = 0.0  # seconds
        self.saved: Optional[float] = None  # by the clock, when the last save was over
        self.first_epoch: Optional[int] = None  # where it began, if it says so
        self.told = False  # a framework counts the epochs itself
        self.anywhere = False  # it can save, and go on, after any step
        self.fresh = True  # no step was made with the batch that was handed out last
        self.optimizer = 0  # the one that stepped last
        self._sweep: Optional[Sweep] = None  # the one that trains
        self._newest: Optional[Sweep] = None  # the one that was last begun, until it is over
        self._before = 0  # batches of sweeps that are over
        self._warm: Optional[Tuple[float, int]] = None  # when a line was first told, and batches
        self._saved_steps = -1

    def sweep(self, iterator: Any, began: float) -> Sweep:
        """The sweep of an iterator that hands out its first batch."""
        if self.began is None:
            self.began = began
        made, took = self.begun
        waited = took if made == id(iterator) else 0.0
        self.workers = getattr(iterator, "_num_workers", None)
        first = self.handed - began
        iterator._rabaska = found = Sweep(iterator, self.steps, began - waited, waited + first)
        if self.workers and first > 0:
            self.starting += first  # they come to life while their first batch is waited for
            found.started = waited + first
        self._newest = found
        return found

    def trains(self, sweep: Sweep) -> None:
        """There was a step since `sweep` handed out its last batch: it is no validation.

        Before the first one, batches may have been passed over to come back to a place.
        """
        self._leave()
        self._before, sweep.first = self.batches, sweep.handed_out
        self._sweep = sweep

    def _leave(self) -> None:
        """Another sweep begins to train; frameworks that count do not exhaust their loaders."""
        self._place()
        if self._complete():
            self.epochs, self.batch = self.epochs + 1, 0
        self._sweep = None

    def _complete(self) -> bool:
        counted = self.told or self.first_epoch is not None
        return self._sweep is not None and not counted and self.batch == self.length

    def exhausted(self, iterator: Any, last: float) -> None:
        """It took `last` seconds to find that out: to end its workers, mostly."""
        sweep = getattr(iterator, "_rabaska", None)
        if sweep is None:
            return
        if sweep.then != self.steps and not sweep.first:
            self.trains(sweep)
        if sweep.first:
            self._place()
            if self.first_epoch is None:
                self.epochs += 1
                self.batch = 0
            self._sweep = None
            if self.workers and not getattr(iterator, "_persistent_workers", False):
                self.starting += last  # those of the next epoch are others
        elif self.steps:  # what was handed out was not trained with
            self.validating += self.clock() - sweep.began
            self.waiting -= sweep.waited + last
            self.starting -= sweep.started
        self._newest = None
        del iterator._rabaska  # workers that persist are iterated anew

    def _place(self) -> None:
        """Where the program is, by the sweep that trains."""
        sweep = self._sweep
        if sweep is None or self.told:
            return
        # The batch that is being worked on does not count yet.
        self.batch = sweep.handed_out - (0 if sweep.then != self.steps else 1)
        self.length = sweep.length
        self.batches = self._before + self.batch - sweep.first + 1
        self.batch_size = getattr(sweep.sampler, "batch_size", None)
        if hasattr(sweep.sampler, "epoch_of"):  # one of our own, which goes over many epochs
            epoch, self.batch, self.length = sweep.sampler.epoch_of(self.batch)
            self.first_epoch = epoch if self.first_epoch is None else self.first_epoch
            self.epochs = epoch - self.first_epoch
            self.anywhere = True

    def _apart(self, clock: float) -> Tuple[float, float]:
        """Seconds of waiting and of validating, with a validation that is under way."""
        now = self._newest
        if now is None or now.first or not self.steps or now.then != self.steps:
            return self.waiting, self.validating
        if now.handed_out < 2:
            return self.waiting, self.validating
        return self.waiting - now.waited, self.validating + clock - now.began

    def save(self, seconds: float) -> None:
        """Files that are written without a step between them are one save."""
        self.saving += seconds
        self.saved = self.clock()
        if self.steps != self._saved_steps:
            self.saves += 1
            self._saved_steps = self.steps

    def line(self, now: float) -> Dict[str, Any]:
        """All of it, for metrics.jsonl; `now` is the time of day."""
        self._place()
        clock = self.clock()
        began = clock if self.began is None else self.began
        over = self._complete()
        waiting, validating = self._apart(clock)
        if self._warm is None:
            self._warm = clock, self.batches
        told: Dict[str, Any] = {
            "time": round(now, 3),
            "began": round(now - (clock - began), 3),
            "steps": self.steps,
            "batches": self.batches,
            "epochs": self.epochs + (1 if over else 0),
            "batch": 0 if over else self.batch,
            "waiting": round(max(0.0, waiting), 4),
        }
        if validating:
            told["validating"] = round(validating, 4)
        if self.batches > self._warm[1]:
            told["each"] = round((clock - self._warm[0]) / (self.batches - self._warm[1]), 6)
        if self.saves and self.saved is not None:
            told.update(saves=self.saves, saving=round(self.saving, 4))
            told["saved"] = round(now - (clock - self.saved), 3)
        for name in ("logging", "starting", "fetching", "forward"):
            if getattr(self, name):
                told[name] = round(getattr(self, name), 4)
        if self.workers is not None:
            told["workers"] = self.workers
        for name in ("length", "batch_size", "total", "first_epoch", "anywhere"):
            if getattr(self, name) not in (None, False):
                told[name] = getattr(self, name)
        return told


def _length(iterator: Any, sampler: Any) -> Optional[int]:
    """Batches in an epoch; None for a stream, and for a number that only stands for no end."""
    try:
        length = len(iterator)
    except TypeError:
        return None
    samples = length * (getattr(sampler, "batch_size", None) or 1)
    return length if 0 < length < _NO_END // 100 and samples < _NO_END else None


SOONEST, LATEST = 0.25, 15.0  # seconds from one line to the next
_SHARE = 1 / 50  # of the time that the training has lasted
_SELDOM = 60.0  # seconds from one line of a rank to the next
_SIZES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE")
_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "LOCAL_RANK")


class Lines:
    """Appended by the first rank; others tell seldom. A line that cannot be written is left out."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._path = environment.get("RABASKA_METRICS", "")
        self._job = int(environment.get("RABASKA_JOB") or 0)
        self.several = several(environment)
        self._next = 0.0  # the time of day of the next line of a rank

    def write(self, count: Count) -> None:
        """A line, and the time of the next one."""
        now = count.clock()
        if count.began is None:
            count.began = now  # a program without a loader of the kind we know
        lasted = now - count.began
        count.due = now + min(LATEST, max(SOONEST, lasted * _SHARE))
        if count.steps:
            self.append(count.line(time.time()))

    def save_begins(self, count: Count) -> None:
        """The next line says that it is over."""
        if count.steps:
            self.append(dict(count.line(time.time()), save="begins"))

    def append(self, told: Dict[str, Any]) -> None:
        own = rank(self._environment)
        if not self._path:
            return
        if self.several:
            self._append_rank(own, told)
        if own == 0:
            self._append(self._path, dict(told, job=self._job, pid=os.getpid()))

    def _append_rank(self, own: int, told: Dict[str, Any]) -> None:
        """All ranks tell how long they took until they met the others, once in a while."""
        if told.get("time", 0.0) < self._next:
            return
        self._next = told["time"] + min(_SELDOM, (told["time"] - told.get("began", 0.0)) / 10)
        names = ("time", "began", "steps", "waiting", "forward")
        found = {name: told[name] for name in names if name in told}
        folder = os.path.join(os.path.dirname(self._path), "jobs", "{:03d}".format(self._job))
        self._append(
            os.path.join(folder, "ranks.jsonl"), dict(found, rank=own, host=os.uname().nodename)
        )

    def _append(self, path: str, told: Dict[str, Any]) -> None:
        line = json.dumps(told) + "\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, 0o644)
        except OSError:
            return
        try:
            os.write(descriptor, line.encode("utf-8"))
        except OSError:
            pass  # no space: the counts go on, and the next line tells all of them
        finally:
            os.close(descriptor)


def several(environment: Mapping[str, str]) -> bool:
    """Whether the program was started as several processes that train together."""
    found = [environment.get(name, "") for name in _SIZES]
    return any(text.isdigit() and int(text) > 1 for text in found)


def rank(environment: Mapping[str, str]) -> int:
    """Which of several processes this is: as they agreed among themselves, else as launched."""
    agreed = _agreed()
    if agreed is not None:
        return agreed
    for name in _RANKS:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    return 0


def _agreed() -> Optional[int]:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_rank())
