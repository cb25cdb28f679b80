"""Exact resume for the Trainer of Hugging Face: `train(trainer)` instead of `trainer.train()`.

The session makes the batches and carries the model, the optimizer, the scheduler and the trainer's
own record of its progress. The trainer's own checkpoints are not needed (`save_strategy="no"`).
"""

import contextlib
import dataclasses
import math
from typing import Any, Dict, Iterator, Optional, Tuple

import transformers

from rabaska.training.sessions import Session, session

from .errors import WrongUse


def train(trainer: Any, **settings: Any) -> Any:
    """Train, from the newest checkpoint on; `settings` are those of a session."""
    _refuse_another_order(trainer)
    exact = _Exact(trainer, session(trainer=_TrainerState(trainer), **settings))
    steps = trainer.args.gradient_accumulation_steps
    if steps > 1 and len(exact.batches) % steps:
        raise WrongUse(
            "this training cannot resume exactly",
            why="{} batches per epoch is not a multiple of gradient_accumulation_steps = {}".format(
                len(exact.batches), steps
            ),
            hint="set dataloader_drop_last, or choose another batch size",
        )
    with exact.session, exact.in_charge_of(trainer):
        exact.session.ask(max_steps=_steps(trainer.args, max(1, len(exact.batches) // steps)))
        return trainer.train()


def _steps(wanted: Any, of_epoch: int) -> int:
    """How many are asked for, as the trainer counts them."""
    if wanted.max_steps > 0:
        return int(wanted.max_steps)
    return math.ceil(float(wanted.num_train_epochs) * of_epoch)


_OF_ITS_OWN = ("get_train_dataloader", "_get_train_sampler")
_ORDERS = {"random": True, "sequential": False}  # whether to shuffle


def _refuse_another_order(trainer: Any) -> None:
    """The session makes the batches: an order of the trainer's own would be lost silently."""
    own = [
        name + "()"
        for name in _OF_ITS_OWN
        if name in vars(trainer)
        or getattr(type(trainer), name, None) is not getattr(transformers.Trainer, name, None)
    ]
    if _order_of(trainer.args) not in _ORDERS:
        own.append(_order_of(trainer.args))
    if own:
        raise WrongUse(
            "this trainer chooses the order of samples itself, and would lose it here",
            why="{} has {}, and an exact training makes the batches".format(
                type(trainer).__name__, " and ".join(own)
            ),
            hint="give it a dataset that has the samples wanted, such as torch.utils.data.Subset("
            "dataset, numbers) with the numbers drawn once from a seed; or use trainer.train() and "
            "its own checkpoints, which is not exact",
        )


def _order_of(wanted: Any) -> str:
    """By its name in Transformers 5; before, there was a switch."""
    if getattr(wanted, "group_by_length", False):
        return "group_by_length"
    return str(getattr(wanted, "train_sampling_strategy", "random"))


_ASKED = ("max_steps", "num_train_epochs")  # in its progress, what this job is asked for


class _TrainerState:
    """All that the trainer remembers, as a part of the session."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self.saved: Optional[Dict[str, Any]] = None

    def state_dict(self) -> Dict[str, Any]:
        trainer = self._trainer
        return {
            "model": trainer.model.state_dict(),
            "optimizer": trainer.optimizer.state_dict(),
            "scheduler": trainer.lr_scheduler.state_dict(),
            "progress": dataclasses.asdict(trainer.state),
            "loss": [trainer._tr_loss, trainer._total_loss_scalar, trainer._globalstep_last_logged],
        }

    def load_state_dict(self, saved: Dict[str, Any]) -> None:
        self.saved = saved  # there is no optimizer yet to put it into

    def restore_progress(self) -> None:
        if self.saved is not None:
            for name, value in self.saved["progress"].items():
                if name not in _ASKED:
                    setattr(self._trainer.state, name, value)

    def restore(self) -> None:
        if self.saved is None:
            return
        trainer, saved = self._trainer, self.saved
        trainer.model.load_state_dict(saved["model"])
        trainer.optimizer.load_state_dict(saved["optimizer"])
        trainer.lr_scheduler.load_state_dict(saved["scheduler"])
        loss, trainer._total_loss_scalar, trainer._globalstep_last_logged = saved["loss"]
        trainer._tr_loss = loss.to(trainer._tr_loss.device)
        trainer._initial_global_step = 0  # the mean loss at the end is of all jobs
        self.saved = None


class _Exact(transformers.TrainerCallback):  # type: ignore[misc,unused-ignore]
    def __init__(self, trainer: Any, own_session: Session) -> None:
        self.session = own_session
        self.batches = _Batches(trainer, own_session)

    @contextlib.contextmanager
    def in_charge_of(self, trainer: Any) -> Iterator[None]:
        """For as long as it trains; afterwards the trainer is as it was."""
        begin = self.init_training_state(trainer._init_training_state)
        trainer.get_train_dataloader, trainer._init_training_state = lambda: self.batches, begin
        trainer.add_callback(self)
        try:
            yield
        finally:
            trainer.remove_callback(self)
            del trainer.get_train_dataloader, trainer._init_training_state

    def init_training_state(self, original: Any) -> Any:
        """The trainer's own beginning, from the epoch on in which the session stands."""

        def begin(*words: Any, **named: Any) -> Tuple[int, int]:
            original(*words, **named)
            self._state.restore_progress()
            self.session.next_epoch(len(self.batches))
            return self.session.place.epoch, 0

        return begin

    @property
    def _state(self) -> _TrainerState:
        part: _TrainerState = self.session.parts["trainer"]
        return part

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._state.restore()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.session.step()
        # The trainer counts the batches of this job; the epoch it logs must count them all.
        epoch, batch = self.session.place
        state.epoch = epoch + batch / len(self.batches)


class _Batches:
    """One epoch each time; the first may be the rest of one."""

    def __init__(self, trainer: Any, own_session: Session) -> None:
        self._session = own_session
        self.batch_size = trainer._train_batch_size
        self.dataset, collate = trainer.train_dataset, trainer.data_collator
        if hasattr(self.dataset, "column_names"):
            self.dataset = trainer._remove_unused_columns(self.dataset, description="training")
        else:
            collate = trainer._get_collator_with_removed_columns(collate, description="training")
        self._wanted = {
            "batch_size": self.batch_size,
            "collate": collate,
            "workers": trainer.args.dataloader_num_workers,
            "drop_last": trainer.args.dataloader_drop_last,
            "shuffle": _ORDERS[_order_of(trainer.args)],
            "pin_memory": trainer.args.dataloader_pin_memory and trainer.args.device.type == "cuda",
        }
        self._ranks = max(1, trainer.args.world_size)

    def __len__(self) -> int:
        mine = -(-len(self.dataset) // self._ranks)
        if self._wanted["drop_last"]:
            return int(mine // self.batch_size)
        return int(-(-mine // self.batch_size))

    def __iter__(self) -> Iterator[Any]:
        return self._session.loader(self.dataset, **self._wanted).rest_of_epoch()
