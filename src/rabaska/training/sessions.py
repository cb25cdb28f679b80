"""A training that can be killed at any moment and ends as if it never had been.

with rabaska.training.session(model=model, optimizer=optimizer) as session:
    for batch in session.loader(dataset, batch_size=32, epochs=10, workers=2):
        ...
        session.step(loss=loss.item())
"""

import os
import sys
from types import TracebackType
from typing import Any, Dict, Iterator, Optional, Tuple, Type, Union

from rabaska.node.record.chain_rule import GO_ON_EXIT_CODE
from rabaska.training.batches import Batches

from . import full_state, process_group, random_state
from .errors import CannotResume, WrongUse
from .process_group import ProcessGroup
from .sample_order import OrderRecipe
from .save_timing import SaveEvery, SaveTiming
from .session_checkpoints import SessionCheckpoints


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


def _folder(chosen: Union[str, "os.PathLike[str]", None]) -> str:
    """A relative folder lies beside the code, which in a job is gone with it."""
    kept = os.environ.get("RABASKA_CHECKPOINTS")
    if chosen is None:
        return os.path.abspath(kept or "checkpoints")
    return os.path.abspath(os.path.join(kept or "", os.fspath(chosen)))


class Session:
    def __init__(
        self, folder: str, seed: int, keep: int, save_every: SaveEvery, parts: Dict[str, Any]
    ) -> None:
        full_state.check(parts)
        self.folder = folder
        self.seed = seed
        self.steps = 0  # that are done
        self.epoch = 0  # that is under way, from 0
        self.batch = 0  # of this epoch, that comes next
        self.resumed = False
        self.finished = False  # in an earlier job already
        self.parts = parts
        self._keep = keep
        self._save_every = save_every
        self._recipe: Optional[Dict[str, Any]] = None  # how the loader makes batches
        self._epochs: Optional[int] = None  # that the loader was asked for
        self._generators: Optional[random_state.State] = None  # to be put back before a batch
        self._handed_out: Optional[Tuple[int, int]] = None  # the batch that is being used
        self._driven = False  # by a loader of ours, between whose batches we save
        self._fresh = False  # since the last step, no batch was handed out

    def __enter__(self) -> "Session":
        self._ranks = ProcessGroup()
        if self._ranks.size > 1:
            process_group.settle(self.parts)
        self._checkpoints = SessionCheckpoints(self.folder, self._keep, self._ranks, self._say)
        self._resume()
        self._pace = SaveTiming(self._save_every, self._ranks)
        return self

    def _resume(self) -> None:
        checkpoint = self._checkpoints.newest(self.parts)
        if checkpoint is None:
            return
        own = checkpoint.state["session"]
        full_state.pin_threads(own["threads"], self._say)
        self.steps, (self.epoch, self.batch) = checkpoint.step, own["place"]
        self._epochs, self._recipe = own["epochs"], own["recipe"]
        self.finished = self._checkpoints.is_done(self.steps)
        full_state.restore(checkpoint.state["parts"], self.parts)
        self._generators = checkpoint.state["generators"][self._ranks.rank]
        random_state.restore(self._generators)
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
                "this dataset cannot resume in the middle of an epoch",
                why="a {} has no length, or its samples have no numbers".format(
                    type(dataset).__name__
                ),
                hint="use a map-style dataset, such as rabaska.training.PackedDataset",
            )
        if workers is None:
            workers = int(os.environ.get("RABASKA_WORKERS") or 0)
        recipe = OrderRecipe(
            self.seed,
            len(dataset),
            batch_size,
            shuffle,
            drop_last,
            self._ranks.rank,
            self._ranks.size,
        )
        full_state.same_recipe(self._recipe, recipe.as_json())
        self._recipe = recipe.as_json()
        return Batches(self, dataset, recipe, epochs, workers, collate, more)

    def epochs(self, count: int) -> Iterator[int]:
        """The numbers of the epochs that are not over, for a loop around one of `loader`."""
        self.finished = self.finished and count == self._epochs
        self._epochs = count
        while self.epoch < count and not self.finished:
            epoch = self.epoch
            yield epoch
            self.epoch, self.batch = epoch + 1, 0

    def step(self, **values: float) -> None:
        """A step of the optimizer is done; `values` are logged beside its number."""
        self._pace.stepped()
        self.steps += 1
        if self._handed_out is not None:
            self.epoch, self.batch = self._handed_out[0], self._handed_out[1] + 1
        self._fresh = True
        self._checkpoints.log(dict(values, step=self.steps, epoch=self.epoch))
        if self.steps == 1:
            self._checkpoints.prepare(self.parts)
        self._checkpoints.surface()
        if not self._driven:
            self.between_steps()

    def save(self) -> None:
        """Save now, and return when it is durable."""
        self.save_soon()
        self._checkpoints.wait()
        self._ranks.agree([0])  # nobody leaves while the first one still writes

    def save_soon(self) -> None:
        """Copy the state now and write it in the background."""
        own = {
            "place": [self.epoch, self.batch],
            "epochs": self._epochs,
            "recipe": self._recipe,
        }
        self._pace.saved(self._checkpoints.save(self.steps, self.parts, own))

    @property
    def seconds_to_write(self) -> float:
        """That the last checkpoint took in the background."""
        return self._checkpoints.seconds_to_write

    def wait(self) -> None:
        """Return when what is being saved is durable."""
        self._checkpoints.wait()

    # What loaders and adapters call; a program with a session of its own need not.

    def begin_loader(self, epochs: Optional[int]) -> Tuple[Tuple[int, int], int]:
        """Where a loader begins, and the epoch it ends before."""
        self._checkpoints.wait()  # no process is forked while a thread writes
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
            random_state.restore(self._generators)
            self._generators = None
        elif self.steps == 0 and not self.resumed:
            self.save()

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
        kept = self._checkpoints
        save, stop = self._pace.wishes(self.steps, kept.seconds_to_write, kept.busy())
        if stop:
            self.save()
            saved = "saved step {}".format(self.steps)
            if not kept.is_saved(self.steps):
                saved = self._not_saved()
            self._say("{} and stopping: {}".format(saved, self._pace.why_it_stops()))
            raise SystemExit(GO_ON_EXIT_CODE)
        if save:
            self.save_soon()

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        problem: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            if kind is None and not self.finished:
                self.save()
                if not self._checkpoints.is_saved(self.steps):
                    message = "{}: the end of the training is only in what the program saves itself"
                    self._say(message.format(self._not_saved()))
                self._checkpoints.finish(self.steps, self._epochs)
        finally:
            self._checkpoints.close()
            self._pace.end()

    def _not_saved(self) -> str:
        newest = self._checkpoints.newest_step()
        return "could not save step {}, the newest checkpoint is of step {}".format(
            self.steps, newest
        )

    def _say(self, text: str) -> None:
        if self._ranks.first:
            sys.stderr.write("rabaska: {}\n".format(text))
            sys.stderr.flush()


__all__ = ["CannotResume", "Session", "session"]
