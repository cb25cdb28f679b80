"""Exact resume for Lightning: a callback that also makes the training batches.

    exact = Exact(dataset, batch_size=32, workers=2)
    trainer = Trainer(callbacks=[exact], max_epochs=10)
    trainer.fit(model, exact.batches)

The trainer's own checkpoint, loops and callbacks included, becomes part of the session's. It is
taken when the trainer asks for the next batch, so that validation and other callbacks are over.
"""

from typing import Any, Dict, Iterator, Optional

import lightning.pytorch as lightning

from rabaska.training.sessions import Session, session


class Exact(lightning.Callback):  # type: ignore[misc,unused-ignore]
    """What the session and its loader take can be given here: `folder`, `seed`, `save_every` …"""

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        workers: Optional[int] = None,
        loader: Optional[Dict[str, Any]] = None,
        **settings: Any,
    ) -> None:
        self.batches = _Batches(self, dataset, dict(loader or {}, batch_size=batch_size))
        self.batches.settings["workers"] = workers
        self.session: Optional[Session] = None
        self._settings = settings
        self._optimized = 0
        self._left = False

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == "fit":
            self.session = session(trainer=_TrainerState(trainer), **self._settings)
            self.session.__enter__()
            self._left = False
            self._optimized = self.session.steps
            self.session.ask(_limit(trainer.max_epochs), _limit(trainer.max_steps))

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        assert self.session is not None
        if trainer.global_step > self._optimized:  # else gradients are still being added up
            self._optimized = trainer.global_step
            loss = outputs["loss"] if isinstance(outputs, dict) else outputs
            self.session.step(**({} if loss is None else {"loss": float(loss)}))

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._leave(None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._leave(exception)

    def _leave(self, problem: Optional[BaseException]) -> None:
        if self.session is not None and not self._left:
            self._left = True
            self.session.__exit__(type(problem) if problem else None, problem, None)


def _limit(number: Optional[int]) -> Optional[int]:
    """Lightning says -1 where there is none."""
    return None if number is None or number < 0 else int(number)


class _TrainerState:
    """Lightning's own checkpoint as a part of the session."""

    def __init__(self, trainer: Any) -> None:
        self._connector = trainer._checkpoint_connector

    def state_dict(self) -> Any:
        return self._connector.dump_checkpoint(weights_only=False)

    def load_state_dict(self, saved: Any) -> None:
        # What the trainer finds here it restores as if it had read it from a file.
        self._connector._loaded_checkpoint = saved


class _Batches:
    """One epoch each time, as Lightning wants it; the first may be the rest of one."""

    def __init__(self, exact: Exact, dataset: Any, settings: Dict[str, Any]) -> None:
        self._exact = exact
        self.dataset = dataset
        self.settings = settings

    def _loader(self) -> Any:
        assert self._exact.session is not None
        return self._exact.session.loader(self.dataset, **self.settings)

    def __len__(self) -> int:
        """Nothing once it had ended: else Lightning would begin empty epochs for ever."""
        loader = self._loader()
        assert self._exact.session is not None
        return 0 if self._exact.session.finished else len(loader)

    def __iter__(self) -> Iterator[Any]:
        rest: Iterator[Any] = self._loader().rest_of_epoch()
        return rest

    # Lightning takes a loader with these for one that can be resumed, which it is.
    def state_dict(self) -> Dict[str, Any]:
        return {}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        pass
