"""The batches of a session: what its `for` loop goes over."""

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional

from . import lazy_imports, random_state, save_timing
from .progress import Place
from .sample_order import EpochOrder, EpochOrders, OrderRecipe

Collate = Callable[[List[Any]], Any]


class Reseeded:
    """A dataset of whole batches."""

    def __init__(self, dataset: Any, seed: int, collate: Optional[Collate]) -> None:
        self._dataset = dataset
        self._seed = seed
        self._collate = collate or lazy_imports.torch().utils.data.default_collate

    def __getitem__(self, turn: EpochOrder) -> Any:
        seed = random_state.seed_for(self._seed, "batch", turn.epoch, turn.number)
        if lazy_imports.in_worker():
            random_state.seed(seed)
            return self._batch(turn.samples)
        with random_state.borrowed(seed), _one_thread():
            return self._batch(turn.samples)

    def _batch(self, samples: List[int]) -> Any:
        at_once = getattr(self._dataset, "__getitems__", None)
        values = at_once(samples) if at_once else [self._dataset[position] for position in samples]
        return self._collate(values)

    def __len__(self) -> int:
        return len(self._dataset)


@contextmanager
def _one_thread() -> Iterator[None]:
    """As in a worker: another number of threads may add up in another order."""
    torch = lazy_imports.torch()
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
        save_timing.pass_over()
        if self._then is not None:
            self._then(worker)


def data_loader(
    dataset: Any,
    recipe: OrderRecipe,
    turns: EpochOrders,
    workers: int,
    collate: Optional[Collate],
    **more: Any,
) -> Any:
    """A DataLoader over `turns`; `more` are arguments of its own."""
    torch = lazy_imports.torch()
    # Its own generator: iter() would otherwise draw from the one that dropout draws from.
    generator = torch.Generator()
    generator.manual_seed(random_state.seed_for(recipe.seed, "loader"))
    first = _Begin(more.pop("worker_init_fn", None))
    return torch.utils.data.DataLoader(
        Reseeded(dataset, random_state.seed_for(recipe.seed, "rank", recipe.rank), collate),
        batch_size=None,
        sampler=turns,
        num_workers=workers,
        collate_fn=_as_it_is,
        generator=generator,
        worker_init_fn=first if workers else None,
        **more,
    )


if TYPE_CHECKING:
    from rabaska.training.sessions import Session


class Batches:
    """Each time it is gone over, it gives what is left of all epochs, or of one epoch more.

    The session saves when the next batch is asked for: then everything the program does with a
    batch, evaluation included, is over.
    """

    def __init__(
        self,
        session: "Session",
        dataset: Any,
        recipe: OrderRecipe,
        epochs: Optional[int],
        workers: int,
        collate: Optional[Collate],
        more: Dict[str, Any],
    ) -> None:
        self.dataset = dataset
        self.batch_size = recipe.batch_size
        self._session = session
        self._recipe = recipe
        self._epochs = epochs
        self._workers = workers
        self._collate = collate
        self._more = more

    def __len__(self) -> int:
        """Batches of all epochs, with those that were used already."""
        return self._recipe.batches() * (1 if self._epochs is None else self._epochs)

    def __iter__(self) -> Iterator[Any]:
        yield from self._between(*self._session.begin_pass(self._epochs, self._recipe.batches()))
        self._session.end_pass()

    def rest_of_epoch(self) -> Iterator[Any]:
        """For a trainer that counts epochs itself: as far as the session was asked to go."""
        return self._between(*self._session.rest_of_epoch(self._recipe.batches()))

    def _between(self, first: Place, last: int) -> Iterator[Any]:
        session = self._session
        turns = EpochOrders(self._recipe, first, last)
        batches = iter(
            data_loader(
                self.dataset, self._recipe, turns, self._workers, self._collate, **self._more
            )
            if len(turns)
            else ()
        )
        session.drive(True)
        try:
            for (epoch, number), batch in zip(turns.places(), batches):
                session.ready()
                session.hand_out(epoch, number)
                yield batch
                session.between_steps()
            session.ready()
        finally:
            session.drive(False)
