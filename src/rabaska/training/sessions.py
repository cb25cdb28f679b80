"""A training that can be killed at any moment and ends as if it never had been.

with rabaska.training.session(model=model, optimizer=optimizer) as session:
    for batch in session.loader(dataset, batch_size=32, epochs=10, workers=2):
        ...
        session.step(loss=loss.item())
"""

import os
import sys
import time
from datetime import timedelta
from types import TracebackType
from typing import Any, Dict, Iterator, Optional, Tuple, Type, Union

from rabaska.node import files
from rabaska.node.record.chain import GO_ON_EXIT_CODE
from rabaska.node.saves import commit
from rabaska.training import asking, generators, lazily, metrics, reading, state, timing
from rabaska.training.batches import Batches
from rabaska.training.crew import Crew
from rabaska.training.memory import Memory
from rabaska.training.trouble import CannotResume, SaveFailed, WrongUse
from rabaska.training.turns import Recipe
from rabaska.training.writer import Save, Writer

DONE = "DONE.json"
_LOOK_EVERY = 1.0  # seconds between two questions to the other ranks

SaveEvery = Union[None, int, timedelta]


def session(
    folder: Union[str, "os.PathLike[str]", None] = None,
    seed: int = 0,
    keep: int = 2,
    save_every: SaveEvery = None,
    **parts: Any,
) -> "Session":
    """A session over everything that has state: `model=`, `optimizer=`, `scheduler=`, `scaler=` …

    Each part has `state_dict` and `load_state_dict`, or is a dictionary. Checkpoints go to
    `folder`, by default to where rabaska keeps those of the run (RABASKA_CHECKPOINTS), else to
    ./checkpoints. `save_every` is a number of steps or a timedelta; without it, the interval is
    chosen so that a failure and the saves together cost least.
    """
    return Session(_folder(folder), seed, keep, save_every, parts)


def _folder(asked: Union[str, "os.PathLike[str]", None]) -> str:
    """A relative folder lies beside the code, which in a job is gone with it."""
    kept = os.environ.get("RABASKA_CHECKPOINTS")
    if asked is None:
        return os.path.abspath(kept or "checkpoints")
    return os.path.abspath(os.path.join(kept or "", os.fspath(asked)))


class Session:
    def __init__(
        self, folder: str, seed: int, keep: int, save_every: SaveEvery, parts: Dict[str, Any]
    ) -> None:
        state.check(parts)
        self.folder = folder
        self.seed = seed
        self.steps = 0  # that are done
        self.epoch = 0  # that is under way, from 0
        self.resumed = False
        self.finished = False  # in an earlier link already
        self.batch = 0  # of this epoch, that comes next
        self.parts = parts
        self._save_every = save_every
        self._writer = Writer(folder, keep)
        self._memory = Memory()
        self._asked = asking.Asked()
        self._recipe: Optional[Dict[str, Any]] = None  # how the loader makes batches
        self._epochs: Optional[int] = None  # that the loader was asked for
        self._generators: Optional[generators.State] = None  # to be put back before a batch
        self._handed_out: Optional[Tuple[int, int]] = None  # the batch that is being used
        self._driven = False  # by a loader of ours, between whose batches we save
        self._fresh = False  # since the last step, no batch was handed out
        self._cost = 0.0  # seconds that the last save took from the training
        self._look_at = 0  # the step at which all ranks compare notes again

    def __enter__(self) -> "Session":
        self._crew = Crew()
        self._log = metrics.Metrics(self._prepared()) if self._crew.first else None
        self._deadline = timing.own_deadline()
        self._resume()
        self._asked.listen()
        self._saved_at = self._stepped_at = time.monotonic()
        self._step_took = 0.0
        return self

    def _prepared(self) -> str:
        os.makedirs(self.folder, exist_ok=True)
        output = os.environ.get("RABASKA_OUTPUT") or self.folder
        os.makedirs(output, exist_ok=True)
        return os.path.join(output, metrics.NAME)

    def _resume(self) -> None:
        found = reading.newest(self.folder, self._say) if self._crew.first else None
        path = self._crew.from_first(found and found.path)
        if path is None:
            if self._log is not None:
                self._log.cut(0)
            return
        found = found or reading.read(path)
        state.fits(found.state, self.parts, self._crew.size)
        state.pin_threads(found.state["session"]["threads"], self._say)
        own = found.state["session"]
        self.steps, (self.epoch, self.batch) = found.step, own["place"]
        self._epochs, self._recipe = own["epochs"], own["recipe"]
        self.finished = self._crew.from_first(self._done() == self.steps)
        state.restore(found.state["parts"], self.parts)
        self._generators = found.state["generators"][self._crew.rank]
        generators.restore(self._generators)
        if self._log is not None:
            self._log.cut(own["metrics"])
        self.resumed = True
        self._say("continuing after step {} (epoch {})".format(self.steps, self.epoch))

    def loader(
        self,
        dataset: Any,
        batch_size: int = 1,
        epochs: Optional[int] = None,
        workers: Optional[int] = None,
        shuffle: bool = True,
        drop_last: bool = False,
        collate: Any = None,
        **more: Any,
    ) -> Batches:
        """The batches that are still to be used: of `epochs` epochs, or of the current one.

        The order, and what the dataset draws at random, depend on the seed, the epoch and the batch
        only. `more` goes to the DataLoader (`pin_memory`, `prefetch_factor` …).
        """
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise WrongUse(
                "this dataset cannot be continued in the middle",
                why="a {} has no length, or its samples have no numbers".format(
                    type(dataset).__name__
                ),
                hint="use a map-style dataset, such as rabaska.training.PackedDataset",
            )
        if workers is None:
            workers = int(os.environ.get("RABASKA_WORKERS") or 0)
        recipe = Recipe(
            self.seed,
            len(dataset),
            batch_size,
            shuffle,
            drop_last,
            self._crew.rank,
            self._crew.size,
        )
        state.same_recipe(self._recipe, recipe.told())
        self._recipe = recipe.told()
        return Batches(self, dataset, recipe, epochs, workers, collate, more)

    def epochs(self, count: int) -> Iterator[int]:
        """The numbers of the epochs that are not over, for a loop around one of `loader`."""
        self._epochs = count
        while self.epoch < count and not self.finished:
            epoch = self.epoch
            yield epoch
            self.epoch, self.batch = epoch + 1, 0

    def step(self, **values: float) -> None:
        """A step of the optimizer is done; `values` are logged beside its number."""
        now = time.monotonic()
        self._step_took, self._stepped_at = now - self._stepped_at, now
        self.steps += 1
        if self._handed_out is not None:
            self.epoch, self.batch = self._handed_out[0], self._handed_out[1] + 1
        self._fresh = True
        if self._log is not None:
            self._log.log(dict(values, step=self.steps, epoch=self.epoch))
            if self.steps == 1:
                self._memory.prepare(state.encoded(self.parts, {}, [])[1])
        self._surface()
        if not self._driven:
            self.between_steps()

    def save(self) -> None:
        """Save now, and return when it is durable."""
        self._save(wait=True)

    def save_soon(self) -> None:
        """Copy the state now and write it in the background."""
        self._save(wait=False)

    @property
    def seconds_to_write(self) -> float:
        """That the last checkpoint took in the background."""
        return self._writer.seconds

    def wait(self) -> None:
        """Return when what is being saved is durable."""
        self._writer.wait()
        self._surface()

    # What loaders and adapters call; a program with a session of its own need not.

    def begin_loader(self, epochs: Optional[int]) -> Tuple[Tuple[int, int], int]:
        """Where a loader begins, and the epoch it ends before."""
        self._writer.wait()  # no process is forked while a thread writes
        last = self.epoch + 1 if epochs is None else epochs
        if self.finished and (epochs is None or epochs == self._epochs):
            return (last, 0), last
        if epochs is not None:
            self.finished, self._epochs = False, epochs
        return (self.epoch, self.batch), last

    def next_epoch(self, batches: int) -> None:
        """Go on to the next epoch if all batches of this one were used."""
        if self.batch >= batches:
            self.epoch, self.batch = self.epoch + 1, 0

    def ready(self) -> None:
        """Just before the first batch: put the generators back, or save where they begin."""
        if self._generators is not None:
            generators.restore(self._generators)
            self._generators = None
        elif self.steps == 0 and not self.resumed:
            self._save(wait=True)

    def _saved_here(self, step: int) -> bool:
        return os.path.isdir(os.path.join(self.folder, commit.folder_name(step)))

    def hand_out(self, epoch: int, number: int) -> None:
        self.epoch = epoch
        self._handed_out = (epoch, number)
        self._fresh = False

    def drive(self, driven: bool) -> None:
        self._driven = driven

    def between_steps(self) -> None:
        """Save, or save and stop, if it is time: everything of the last step is done now."""
        if not self._fresh:
            return  # gradients are being added up over several batches
        save, stop = self._by_count(), False
        if self.steps >= self._look_at:
            pause = max(1, int(_LOOK_EVERY / max(self._step_took, 1e-6)))
            wishes = [
                int(self._by_clock()),
                int(self._must_stop()),
                pause if self._crew.first else 0,
            ]
            by_clock, must_stop, pause = self._crew.agree(wishes)
            save, stop = save or bool(by_clock), bool(must_stop)
            self._look_at = self.steps + (pause if self._crew.size > 1 else 1)
        if stop:
            self._stop()
        if save:
            self._save(wait=False)

    def _by_count(self) -> bool:
        every = self._save_every
        return isinstance(every, int) and self.steps % every == 0

    def _by_clock(self) -> bool:
        every = self._save_every
        if isinstance(every, int) or not self._crew.first or self._writer.busy():
            return False
        if every is None:
            seconds = timing.interval(self._cost, writing=self._writer.seconds)
        else:
            seconds = every.total_seconds()
        return time.monotonic() - self._saved_at >= seconds

    def _must_stop(self) -> bool:
        saving = self._cost + self._writer.seconds
        return bool(self._asked) or timing.time_to_stop(
            time.time(), self._deadline, saving, self._step_took
        )

    def _stop(self) -> None:
        why = "asked by {}".format(self._asked.by) if self._asked else "the time is nearly over"
        self._save(wait=True)
        self._say("saved step {} and stopping: {}".format(self.steps, why))
        raise SystemExit(GO_ON_EXIT_CODE)

    def _save(self, wait: bool) -> None:
        self._writer.wait()  # what it writes is in the memory that is filled now
        self._surface()
        began = time.monotonic()
        each = self._crew.gather(generators.state())
        if self._crew.first:
            self._writer.start(self._snapshot(each))
        self._saved_at = time.monotonic()
        self._cost = self._saved_at - began
        if wait:
            self._writer.wait()
            self._surface()
            self._crew.agree([0])  # nobody leaves while the first one still writes

    def _snapshot(self, each: "list[generators.State]") -> Save:
        assert self._log is not None
        own = {
            "place": [self.epoch, self.batch],
            "epochs": self._epochs,
            "recipe": self._recipe,
            "metrics": self._log.size(),
            "threads": lazily.torch().get_num_threads(),
            "ranks": self._crew.size,
        }
        text, tensors = state.encoded(self.parts, own, each)
        about = {"epoch": self.epoch, "batch": self.batch, "torch": lazily.torch().__version__}
        for name in ("RABASKA_RUN", "RABASKA_LINK"):
            about[name.lower()[8:]] = os.environ.get(name)
        return Save(self.steps, self._memory.take(tensors), text, about, self._log.sync)

    def _surface(self) -> None:
        """Tell what went wrong in the background."""
        problem = self._writer.problem()
        if problem is None:
            return
        if isinstance(problem, OSError) and problem.errno in commit.NO_SPACE:
            self._say(
                "a checkpoint could not be saved: {}; the training goes on and the older "
                "checkpoints stay".format(problem.strerror)
            )
            return
        raise SaveFailed(
            "a checkpoint could not be saved in {}".format(self.folder),
            why="{}: {}".format(type(problem).__name__, problem),
            hint="the checkpoints before it are whole; start again to continue from them",
        ) from problem

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        problem: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            if kind is None and not self.finished:
                self._finish()
        finally:
            self._writer.close()
            self._asked.stop_listening()
            if self._log is not None:
                self._log.close()

    def _finish(self) -> None:
        """The training is over; DONE.json says so for good, whatever becomes of the exit code."""
        self._save(wait=True)
        if self._crew.first and self._saved_here(self.steps):
            done = {"step": self.steps, "epochs": self._epochs}
            files.write_json(os.path.join(self.folder, DONE), done)

    def _done(self) -> Optional[int]:
        """The step after which the training was over, if it was."""
        try:
            return (files.read_json(os.path.join(self.folder, DONE)) or {}).get("step")
        except ValueError:
            return None

    def _say(self, text: str) -> None:
        if self._crew.first:
            sys.stderr.write("rabaska: {}\n".format(text))
            sys.stderr.flush()


__all__ = ["CannotResume", "Session", "session"]
