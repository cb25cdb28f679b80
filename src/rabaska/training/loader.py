"""Batches that do not depend on who makes them: any number of workers gives the same ones.

Before each batch the generators of Python, NumPy and PyTorch are seeded from (seed, epoch, batch),
in whichever process makes it; the training's own generators are never touched.
"""

from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional

from rabaska.training import asking, generators, lazily
from rabaska.training.turns import Recipe, Turn, Turns

Collate = Callable[[List[Any]], Any]


class Reseeded:
    """A dataset of whole batches."""

    def __init__(self, dataset: Any, seed: int, collate: Optional[Collate]) -> None:
        self._dataset = dataset
        self._seed = seed
        self._collate = collate or lazily.torch().utils.data.default_collate

    def __getitem__(self, turn: Turn) -> Any:
        seed = generators.seed_for(self._seed, "batch", turn.epoch, turn.number)
        if lazily.in_worker():
            generators.seed(seed)
            return self._batch(turn.samples)
        with generators.borrowed(seed), _one_thread():
            return self._batch(turn.samples)

    def _batch(self, samples: List[int]) -> Any:
        at_once = getattr(self._dataset, "__getitems__", None)
        found = at_once(samples) if at_once else [self._dataset[one] for one in samples]
        return self._collate(found)

    def __len__(self) -> int:
        return len(self._dataset)


@contextmanager
def _one_thread() -> Iterator[None]:
    """As in a worker: another number of threads may add up in another order."""
    torch = lazily.torch()
    threads = torch.get_num_threads()
    if threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _as_it_is(batch: Any) -> Any:
    return batch


class _Begin:
    """What a worker does first."""

    def __init__(self, then: Optional[Callable[[int], None]]) -> None:
        self._then = then

    def __call__(self, worker: int) -> None:
        asking.pass_over()
        if self._then is not None:
            self._then(worker)


def data_loader(
    dataset: Any,
    recipe: Recipe,
    turns: Turns,
    workers: int,
    collate: Optional[Collate],
    **more: Any,
) -> Any:
    """A DataLoader over `turns`; `more` are arguments of its own."""
    torch = lazily.torch()
    # Its own generator: iter() would otherwise draw from the one that dropout draws from.
    generator = torch.Generator()
    generator.manual_seed(generators.seed_for(recipe.seed, "loader"))
    first = _Begin(more.pop("worker_init_fn", None))
    return torch.utils.data.DataLoader(
        Reseeded(dataset, generators.seed_for(recipe.seed, "rank", recipe.rank), collate),
        batch_size=None,
        sampler=turns,
        num_workers=workers,
        collate_fn=_as_it_is,
        generator=generator,
        worker_init_fn=first if workers else None,
        **more,
    )
