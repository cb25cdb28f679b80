"""The order of samples: a function of the seed, the epoch and the rank, and of nothing else."""

from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from rabaska.training import lazily
from rabaska.training.generators import seed_for


class Turn(NamedTuple):
    """One batch to be made: which it is, and of which samples."""

    epoch: int
    number: int  # in the epoch, from 0
    samples: List[int]


class Recipe(NamedTuple):
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

    def told(self) -> Dict[str, Any]:
        """What must be the same when a run continues."""
        told = dict(self._asdict())
        del told["rank"]
        return told


def order(recipe: Recipe, epoch: int) -> Any:
    """The samples of this rank in one epoch, as a tensor; the first ones fill up the last round."""
    torch = lazily.torch()
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


class Turns:
    """The batches from one place of one epoch to the end of the last, for a DataLoader."""

    def __init__(self, recipe: Recipe, first: Tuple[int, int], epochs: int) -> None:
        self._recipe = recipe
        self._first = first
        self._epochs = epochs

    def places(self) -> Iterator[Tuple[int, int]]:
        epoch, number = self._first
        for each in range(epoch, self._epochs):
            for one in range(number if each == epoch else 0, self._recipe.batches()):
                yield each, one

    def epoch_of(self, count: int) -> Tuple[int, int, int]:
        """The epoch and batch after `count` of these, and how many batches an epoch has."""
        epoch, number = self._first
        later, batch = divmod(number + count, self._recipe.batches())
        return epoch + later, batch, self._recipe.batches()

    def __iter__(self) -> Iterator[Turn]:
        current, samples, size = -1, None, self._recipe.batch_size
        for epoch, number in self.places():
            if epoch != current:
                current, samples = epoch, order(self._recipe, epoch)
            mine = samples[number * size : (number + 1) * size]  # type: ignore[index]
            yield Turn(epoch, number, mine.tolist())

    def __len__(self) -> int:
        epoch, number = self._first
        return max(0, (self._epochs - epoch) * self._recipe.batches() - number)
