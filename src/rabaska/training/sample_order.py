"""In which order samples are seen: by seed, epoch and rank; resumed in the middle, exactly."""

import random
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Sized, Tuple

from . import lazy_imports
from .random_state import seed_for

_SHARDS_MIXED = 8  # shards whose samples are mixed when the order follows arrival


class Order:
    """A sampler for a DataLoader: the same order for the same seed and epoch, from any place on.

    `order.resume(epoch, done)` goes on after `done` samples of this rank, at no cost. With
    `by_arrival=True` the first epoch takes samples from a few shards at a time, in the order in
    which shards arrive on the node; which samples come when does not depend on how fast they do.
    """

    def __init__(
        self,
        dataset: Sized,
        seed: int = 0,
        *,
        rank: int = 0,
        ranks: int = 1,
        by_arrival: bool = False,
    ) -> None:
        self._dataset = dataset
        self._seed = seed
        self._rank, self._ranks = rank, ranks
        self._by_arrival = by_arrival
        self._done = 0
        self.epoch = 0
        _numpy()  # before there are workers, or each would import it for itself

    def set_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch, self._done = epoch, 0

    def resume(self, epoch: int, done: int) -> None:
        """Go on after so many samples of this rank in that epoch."""
        self.epoch, self._done = epoch, done

    def __len__(self) -> int:
        return len(self._dataset) // self._ranks - self._done

    def __iter__(self) -> Iterator[int]:
        positions = self._positions()
        share = len(self._dataset) // self._ranks  # the same for each rank, or some would wait
        mine = positions[self._rank : share * self._ranks : self._ranks]
        return iter(_listed(mine[self._done :]))

    def _positions(self) -> Sequence[int]:
        count = len(self._dataset)
        shards_of = getattr(self._dataset, "shards_of", None)
        if not self._by_arrival or self.epoch > 0 or shards_of is None:
            return self._shuffled(range(count), 0)
        return self._mixed(shards_of(range(count)))

    def _mixed(self, shards: List[int]) -> List[int]:
        """A few shards at a time; samples lie in the order of their shards."""
        groups: Dict[int, List[int]] = {}
        for position, shard in enumerate(shards):
            groups.setdefault(shard // _SHARDS_MIXED, []).append(position)
        return [
            position
            for number, group in sorted(groups.items())
            for position in _listed(self._shuffled(group, number))
        ]

    def _shuffled(self, positions: Sequence[int], salt: int) -> Sequence[int]:
        numpy = _numpy()
        if numpy is None:
            shuffled = list(positions)
            random.Random("{}/{}/{}".format(self._seed, self.epoch, salt)).shuffle(shuffled)
            return shuffled
        source = numpy.random.Generator(numpy.random.PCG64([self._seed, self.epoch, salt]))
        # Of a number it makes the same, without going over a range one by one.
        what = len(positions) if isinstance(positions, range) else positions
        mixed: Sequence[int] = source.permutation(what)
        return mixed

    def state_dict(self) -> Dict[str, Any]:
        """As `resume` was told: only the training knows how many samples it has used since."""
        return {"seed": self._seed, "epoch": self.epoch, "done": self._done}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._seed = state["seed"]
        self.resume(state["epoch"], state["done"])


def _listed(positions: Any) -> List[int]:
    """As numbers of Python, which a DataLoader and its workers are quickest with."""
    numbers: List[int] = positions.tolist() if hasattr(positions, "tolist") else positions
    return numbers


def _numpy() -> Optional[Any]:
    try:
        import numpy.random
    except ImportError:
        return None
    return numpy


class EpochOrder(NamedTuple):
    """One batch to be made: which it is, and of which samples."""

    epoch: int
    number: int  # in the epoch, from 0
    samples: List[int]


class OrderRecipe(NamedTuple):
    """Everything that decides which samples are in which batch."""

    seed: int
    samples: int
    batch_size: int
    shuffle: bool = True
    drop_last: bool = False
    rank: int = 0
    ranks: int = 1

    def batches(self) -> int:
        """In one epoch, on each rank: all ranks have the same number."""
        mine = -(-self.samples // self.ranks)
        return mine // self.batch_size if self.drop_last else -(-mine // self.batch_size)

    def as_json(self) -> Dict[str, Any]:
        """What must be the same when a run continues."""
        values = dict(self._asdict())
        del values["rank"]
        return values


def order(recipe: OrderRecipe, epoch: int) -> Any:
    """The samples of this rank in one epoch, as a tensor; the first ones fill up the last round."""
    torch = lazy_imports.torch()
    if recipe.shuffle:
        generator = torch.Generator()
        generator.manual_seed(seed_for(recipe.seed, "order", epoch))
        samples = torch.randperm(recipe.samples, generator=generator)
    else:
        samples = torch.arange(recipe.samples)
    missing = -recipe.samples % recipe.ranks
    if missing:
        samples = torch.cat([samples, samples[:missing]])
    return samples[recipe.rank :: recipe.ranks]


class EpochOrders:
    """The batches from one place of one epoch to the end of the last, for a DataLoader."""

    def __init__(self, recipe: OrderRecipe, first: Tuple[int, int], epochs: int) -> None:
        self._recipe = recipe
        self._first = first
        self._epochs = epochs

    def places(self) -> Iterator[Tuple[int, int]]:
        epoch, number = self._first
        for turn in range(epoch, self._epochs):
            for batch in range(number if turn == epoch else 0, self._recipe.batches()):
                yield turn, batch

    def epoch_of(self, count: int) -> Tuple[int, int, int]:
        """The epoch and batch after `count` of these, and how many batches an epoch has."""
        epoch, number = self._first
        later, batch = divmod(number + count, self._recipe.batches())
        return epoch + later, batch, self._recipe.batches()

    def __iter__(self) -> Iterator[EpochOrder]:
        current, samples, size = -1, None, self._recipe.batch_size
        for epoch, number in self.places():
            if epoch != current:
                current, samples = epoch, order(self._recipe, epoch)
            mine = samples[number * size : (number + 1) * size]  # type: ignore[index]
            yield EpochOrder(epoch, number, mine.tolist())

    def __len__(self) -> int:
        epoch, number = self._first
        return max(0, (self._epochs - epoch) * self._recipe.batches() - number)
