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

from . import full_state, process_group, random_state, session_folders
from .errors import CannotResume, WrongUse
from .process_group import ProcessGroup
from .progress import Asked, Place, Progress
from .sample_order import OrderRecipe
from .save_timing import SaveEvery, SaveTiming, checked_interval
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
    where = session_folders.absolute(folder)
    return Session(where, seed, keep, checked_interval(save_every), parts)


class Session:
    def __init__(
        self, folder: str, seed: int, keep: int, save_every: SaveEvery, parts: Dict[str, Any]
    ) -> None:
        full_state.check(parts)
        self.folder = folder
        self.seed = seed
        self.resumed = False
        self.parts = parts
        self._progress = Progress()
        self._keep = keep
        self._save_every = save_every
        self._recipe: Optional[Dict[str, Any]] = None  # how the loader makes batches
        self._generators: Optional[random_state.State] = None  # to be put back before a batch
        self._driven = False  # by a loader of ours, between whose batches we save
        self._said_that_it_had_ended = False

    @property
    def steps(self) -> int:
        """That are done."""
        return self._progress.steps

    @property
    def epoch(self) -> int:
        """That is under way, from 0."""
        return self._progress.epoch

    @property
    def finished(self) -> bool:
        """In an earlier job already."""
        return self._progress.ended is not None

    def __enter__(self) -> "Session":
        session_folders.refuse_if_open(self.folder)
        self._ranks = ProcessGroup()
        if self._ranks.size > 1:
            process_group.settle(self.parts)
        self._checkpoints = SessionCheckpoints(self.folder, self._keep, self._ranks, self._say)
        self._resume()
        self._pace = SaveTiming(self._save_every, self._ranks)
        session_folders.opened(self.folder, self)
        return self

    def _resume(self) -> None:
        checkpoint = self._checkpoints.newest(self.parts)
        if checkpoint is None:
            return
        session_folders.refuse_if_ended(self.folder)
        own = checkpoint.state["session"]
        full_state.pin_threads(own["threads"], self._say)
        self._recipe = own["recipe"]
        ended = self._checkpoints.asked_at_end(checkpoint.step)
        self._progress.resume(checkpoint.step, Place(*own["place"]), ended)
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
        """The batches that are still to be used: of `epochs` epochs, or of one for each pass.

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
        if recipe.batches() == 0:
            raise WrongUse(
                "this loader has no batches",
                why="the dataset has {} samples for each of {} processes, and a batch {}".format(
                    len(dataset) // self._ranks.size, self._ranks.size, batch_size
                ),
                hint="check the dataset, choose a smaller `batch_size`, or leave out `drop_last`",
            )
        full_state.same_recipe(self._recipe, recipe.as_json())
        self._recipe = recipe.as_json()
        return Batches(self, dataset, recipe, epochs, workers, collate, more)

    def epochs(self, count: int) -> Iterator[int]:
        """The numbers of the epochs that are not over, for a loop around one of `loader`."""
        yield from self._progress.epochs(count)
        self._tell_if_it_had_ended()

    def step(self, **values: float) -> None:
        """A step of the optimizer is done; `values` are logged beside its number."""
        self._pace.stepped()
        self._progress.step()
        self._checkpoints.log(dict(values, step=self.steps, epoch=self.epoch))
        if self.steps == 1:
            self._checkpoints.prepare(self.parts)
        self._checkpoints.surface()
        if not self._driven:
            self.between_steps()

    def save(self) -> None:
        """Save now, and return when it is durable.

        Several processes save together: with them it is a request, which is met about a second
        later, after the step at which they next compare notes. One of them may ask for all.
        """
        self.save_soon()
        if self._ranks.size == 1:
            self._checkpoints.wait()

    def save_soon(self) -> None:
        """Copy the state now and write it in the background; with several processes as `save`."""
        if self._ranks.size > 1:
            self._pace.request()
        else:
            self._copy()

    def _copy(self) -> None:
        own = {"place": list(self._progress.place), "recipe": self._recipe}
        self._pace.saved(self._checkpoints.save(self.steps, self.parts, own))

    def _save_together(self) -> None:
        """All processes come here after the same step."""
        self._copy()
        self._checkpoints.wait()
        self._ranks.agree([0])  # nobody leaves while the first one still writes

    @property
    def seconds_to_write(self) -> float:
        """That the last checkpoint took in the background."""
        return self._checkpoints.seconds_to_write

    def wait(self) -> None:
        """Return when what is being saved is durable."""
        self._checkpoints.wait()

    # What loaders and adapters call; a program with a session of its own need not.

    @property
    def place(self) -> Place:
        """Where a training resumes that is saved now."""
        return self._progress.place

    def ask(self, epochs: Optional[int] = None, max_steps: Optional[int] = None) -> bool:
        """Whether there is anything left of so many epochs, or steps."""
        self._progress.ask(Asked(epochs, max_steps))
        self._tell_if_it_had_ended()
        return self._progress.has_left()

    def begin_pass(self, epochs: Optional[int], batches: int) -> Tuple[Place, int]:
        """Where a loader begins, and the epoch it ends before."""
        self._checkpoints.wait()  # no process is forked while a thread writes
        place = self._progress.begin_pass(epochs, batches)
        self._tell_if_it_had_ended()
        return place

    def end_pass(self) -> None:
        self._progress.end_pass()

    def rest_of_epoch(self, batches: int) -> Tuple[Place, int]:
        """The same for a trainer that counts epochs itself."""
        self._checkpoints.wait()
        return self._progress.rest_of_epoch(batches)

    def next_epoch(self, batches: int) -> None:
        """Go on to the next epoch if all batches of this one were used."""
        self._progress.next_epoch(batches)

    def ready(self) -> None:
        """Just before the first batch: put the generators back, or save where they begin."""
        if self._generators is not None:
            random_state.restore(self._generators)
            self._generators = None
        elif self.steps == 0 and not self.resumed:
            self._save_together()

    def hand_out(self, epoch: int, number: int) -> None:
        self._progress.hand_out(epoch, number)

    def drive(self, driven: bool) -> None:
        self._driven = driven

    def between_steps(self) -> None:
        """Save, or save and stop, if it is time: everything of the last step is done now."""
        if not self._progress.fresh:
            return  # gradients are being added up over several batches
        kept = self._checkpoints
        save, stop = self._pace.wishes(self.steps, kept.seconds_to_write, kept.busy())
        if stop:
            self._save_together()
            saved = "saved step {}".format(self.steps)
            if not kept.is_saved(self.steps):
                saved = self._not_saved()
            self._say("{} and stopping: {}".format(saved, self._pace.why_it_stops()))
            raise SystemExit(GO_ON_EXIT_CODE)
        if save:
            self._copy()

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        problem: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            if kind is None and not self.finished:
                self._save_together()
                if not self._checkpoints.is_saved(self.steps):
                    message = "{}: the end of the training is only in what the program saves itself"
                    self._say(message.format(self._not_saved()))
                self._checkpoints.finish(self.steps, self._progress.asked)
        finally:
            session_folders.closed(self.folder, ended=kind is None)
            self._checkpoints.close()
            self._pace.end()

    def _not_saved(self) -> str:
        newest = self._checkpoints.newest_step()
        return "could not save step {}, the newest checkpoint is of step {}".format(
            self.steps, newest
        )

    def _tell_if_it_had_ended(self) -> None:
        if self.finished and not self._said_that_it_had_ended:
            self._said_that_it_had_ended = True
            message = "this training had ended at step {}; nothing is left to do"
            self._say(message.format(self.steps))

    def _say(self, text: str) -> None:
        if self._ranks.first:
            sys.stderr.write("rabaska: {}\n".format(text))
            sys.stderr.flush()


__all__ = ["CannotResume", "Session", "session"]
