"""How far a training is: its steps, the batch that comes next, and what it is asked for."""

import math
from typing import Iterator, NamedTuple, Optional, Tuple

from .errors import WrongUse


class Asked(NamedTuple):
    """How long to train; None is no limit."""

    epochs: Optional[int] = None
    max_steps: Optional[int] = None

    def is_more_than(self, before: "Asked") -> bool:
        if before == Asked():  # the program's own loop knew it, and nobody else
            return self != before
        return any(_number(now) > _number(then) for now, then in zip(self, before))


def _number(limit: Optional[int]) -> float:
    return math.inf if limit is None else limit


class Place(NamedTuple):
    epoch: int  # from 0
    batch: int  # of this epoch, from 0


class Progress:
    """`place` is where a training resumes that is saved now.

    A batch that was handed out does not change it, only a step that was made with it does. A loader
    of one epoch stands for the first epoch when it is gone over first in a process, then for the
    second, and so on: a resumed program counts its epochs from 0 again.
    """

    def __init__(self) -> None:
        self.steps = 0  # that are done
        self.place = Place(0, 0)
        self.asked = Asked()
        self.ended: Optional[Asked] = None  # what an earlier job made, if no more is asked for now
        self.fresh = False  # since the last step, no batch was handed out
        self._in_use: Optional[Place] = None
        self._counted: Optional[int] = None  # the epoch that `epochs` is in
        self._passes = 0  # epochs that loaders stood for in this process, or in one of `epochs`
        self._stands_for = 1  # epochs, the pass that is under way
        self._pass_began: Optional[int] = None  # after this step
        self._pass_is_over = False

    @property
    def epoch(self) -> int:
        """That is under way: of the batch that is being used, or was used last."""
        return self.place.epoch if self.fresh or self._in_use is None else self._in_use.epoch

    def resume(self, steps: int, place: Place, ended: Optional[Asked]) -> None:
        self.steps, self.place, self.ended = steps, place, ended

    def ask(self, asked: Asked) -> None:
        """A training that had ended goes on if it is asked for more than it was then."""
        self.asked = asked
        if self.ended is not None and asked.is_more_than(self.ended):
            self.ended = None

    def hand_out(self, epoch: int, number: int) -> None:
        self._in_use = Place(epoch, number)
        self.fresh = False

    def step(self) -> None:
        self.steps += 1
        if self._in_use is not None:
            self.place = Place(self._in_use.epoch, self._in_use.batch + 1)
        self.fresh = True

    def next_epoch(self, batches: int) -> None:
        """Go on to the next epoch if all batches of this one were used."""
        if self.place.batch >= batches:
            self._begin(self.place.epoch + 1)

    def _begin(self, epoch: int) -> None:
        self.place, self._in_use = Place(epoch, 0), None

    def epochs(self, count: int) -> Iterator[int]:
        """The numbers of those that are not over."""
        self.ask(Asked(epochs=count))
        while self.place.epoch < count and self.ended is None:
            self._counted = self.place.epoch
            self._passes, self._pass_began = 0, None
            yield self._counted
            self._begin(self._counted + 1)
        self._counted = None

    def has_left(self) -> bool:
        """Whether there are steps to make, and epochs to begin, of what is asked for."""
        inside = self.place.epoch < _number(self.asked.epochs)
        return self.ended is None and inside and self.steps < _number(self.asked.max_steps)

    def rest_of_epoch(self, batches: int) -> Tuple[Place, int]:
        """Where the batches begin that are left of this epoch, and the epoch they end before."""
        self.next_epoch(batches)
        return self.place, self.place.epoch + self.has_left()

    def begin_pass(self, epochs: Optional[int], batches: int) -> Tuple[Place, int]:
        """The same for one pass over a loader, of all epochs or of one."""
        number = self._number_of_pass()
        if epochs is None and self._counted is None:
            return self._own_epoch(number)
        if epochs is None:
            last = self.place.epoch + 1
        else:
            self.ask(Asked(epochs=epochs))
            last = epochs
            self._stands_for = max(1, epochs - number)
        if number > 0:
            self.ended = None  # a program that asks again wants more
            self._refuse_an_empty_pass(last, batches)
        return self.place, last if self.ended is None else self.place.epoch

    def _own_epoch(self, number: int) -> Tuple[Place, int]:
        """The epoch that the program's own loop is in, or what is left of it."""
        if number > self.place.epoch:
            self._begin(number)
            self.ended = None
        was_left = self.ended is not None and self.place.batch > 0
        if number < self.place.epoch or was_left:
            return self.place, self.place.epoch
        return self.place, self.place.epoch + 1

    def _number_of_pass(self) -> int:
        """Of the one that begins now; one in which nothing was done does not count."""
        if self._pass_began is not None and (self._pass_is_over or self.steps > self._pass_began):
            self._passes += self._stands_for
        self._stands_for = 1
        self._pass_began, self._pass_is_over = self.steps, False
        return self._passes

    def end_pass(self) -> None:
        """Its last batch was used."""
        self._pass_is_over = True

    def _refuse_an_empty_pass(self, last: int, batches: int) -> None:
        if (last - self.place.epoch) * batches > self.place.batch:
            return
        raise WrongUse(
            "no batches are left for another pass over the loader",
            why="the {} were all used".format(
                "batches of this epoch" if self._counted is not None else "epochs asked for"
            ),
            hint="go over it once, ask for more `epochs`, or leave `epochs` out: then each pass is "
            "one epoch",
        )
