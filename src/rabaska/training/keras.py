"""Exact resume for Keras on PyTorch: `fit(model, dataset, …)` instead of `model.fit(…)`.

The session makes the batches, which are (x, y) pairs, and carries all variables of the model, of
its optimizer and of its metrics, so that also the mean loss of an epoch is that of the whole epoch.
"""

from typing import Any, Dict, List, Optional

import keras
import torch

from rabaska.training.sessions import Session, session


def fit(
    model: Any,
    dataset: Any,
    batch_size: int = 32,
    epochs: int = 1,
    workers: Optional[int] = None,
    callbacks: Optional[List[Any]] = None,
    loader: Optional[Dict[str, Any]] = None,
    fit: Optional[Dict[str, Any]] = None,
    **settings: Any,
) -> Any:
    """Train, from the newest checkpoint on.

    `settings` are those of a session, `loader` those of its loader, `fit` those of `model.fit`.
    """
    state = _ModelState(model)
    with session(model=state, **settings) as own_session:
        options = dict(loader or {}, batch_size=batch_size, workers=workers)
        more = dict(
            fit or {}, shuffle=False, callbacks=[_Exact(own_session, state), *(callbacks or [])]
        )
        history = None
        if _is_over(own_session, dataset, options, epochs):
            return state.restore_ended(dataset, options.get("collate"))
        if own_session.place.batch > 0:
            # Keras believes the first epoch it sees when it says how long they all are.
            history = _fit_epochs(
                model,
                _Batches(own_session, dataset, options),
                own_session.place.epoch + 1,
                more,
            )
        if history is None or not model.stop_training:
            last = _fit_epochs(model, _Batches(own_session, dataset, options), epochs, more)
            history = _joined(history, last)
    return history


def _is_over(own_session: Session, dataset: Any, options: Dict[str, Any], epochs: int) -> bool:
    """Whether an earlier job made the last of the epochs."""
    own_session.next_epoch(len(own_session.loader(dataset, **options)))
    return not own_session.ask(epochs=epochs)


def _fit_epochs(model: Any, batches: "_Batches", epochs: int, more: Dict[str, Any]) -> Any:
    first = batches.session.place.epoch
    return model.fit(batches, epochs=epochs, initial_epoch=first, **more)


def _joined(first: Any, second: Any) -> Any:
    """The history of both, as one call would have left it."""
    if first is not None:
        second.epoch = first.epoch + second.epoch
        for name, values in first.history.items():
            second.history[name] = values + second.history.get(name, [])
    return second


class _ModelState:
    """Every variable, in the order in which Keras lists them."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._saved: Optional[Dict[str, Any]] = None

    def _variables(self) -> Dict[str, List[Any]]:
        model = self._model
        return {
            "model": model.variables,
            "optimizer": model.optimizer.variables,
            "metrics": model.metrics_variables,
        }

    def state_dict(self) -> Dict[str, Any]:
        return {
            kind: [variable.value for variable in variables]
            for kind, variables in self._variables().items()
        }

    def load_state_dict(self, saved: Dict[str, Any]) -> None:
        self._saved = saved  # the optimizer has no variables before the model is fitted

    def restore(self) -> None:
        """After Keras has built everything and reset the metrics of the epoch."""
        if self._saved is not None:
            for kind, variables in self._variables().items():
                for variable, value in zip(variables, self._saved[kind]):
                    variable.assign(value)
            self._saved = None

    def restore_ended(self, dataset: Any, collate: Any) -> Any:
        """Where no epoch is left in which Keras would build everything; an empty history."""
        model = self._model
        if not model.built:
            model((collate or torch.utils.data.default_collate)([dataset[0]])[0])
        model.optimizer.build(model.trainable_variables)
        self.restore()
        history = keras.callbacks.History()
        history.on_train_begin()
        return history


class _Exact(keras.callbacks.Callback):  # type: ignore[misc,unused-ignore]
    def __init__(self, own_session: Session, state: _ModelState) -> None:
        super().__init__()
        self._session = own_session
        self._state = state

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._state.restore()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._session.step(**{name: float(value) for name, value in (logs or {}).items()})


class _Batches(torch.utils.data.DataLoader):  # type: ignore[misc,type-arg,unused-ignore]
    """What Keras takes for a DataLoader: one epoch each time, the first maybe the rest of one."""

    def __init__(self, own_session: Session, dataset: Any, options: Dict[str, Any]) -> None:
        super().__init__(dataset, batch_size=options["batch_size"])
        self.session = own_session
        self._loader = own_session.loader(dataset, **options)
        self.session.next_epoch(len(self._loader))

    def __len__(self) -> int:
        return len(self._loader) - self.session.place.batch

    def __iter__(self) -> Any:
        return self._loader.rest_of_epoch()
