"""The batches of a session: what its `for` loop goes over."""

from typing import TYPE_CHECKING, Any, Dict, Iterator, Optional

from rabaska.training import loader
from rabaska.training.turns import Recipe, Turns

if TYPE_CHECKING:
    from rabaska.training.sessions import Session


class Batches:
    """Each time it is gone over, it begins where the session stands.

    The session saves when the next batch is asked for: then everything the program does with a
    batch, evaluation included, is over.
    """

    def __init__(
        self,
        session: "Session",
        dataset: Any,
        recipe: Recipe,
        epochs: Optional[int],
        workers: int,
        collate: Optional[loader.Collate],
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
        session = self._session
        first, last = session.begin_loader(self._epochs)
        turns = Turns(self._recipe, first, last)
        made = iter(
            loader.data_loader(
                self.dataset, self._recipe, turns, self._workers, self._collate, **self._more
            )
            if len(turns)
            else ()
        )
        session.drive(True)
        try:
            for (epoch, number), batch in zip(turns.places(), made):
                session.ready()
                session.hand_out(epoch, number)
                yield batch
                session.between_steps()
            session.ready()
        finally:
            session.drive(False)
