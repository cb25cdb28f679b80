"""What frameworks know better themselves: Keras its steps and epochs, others how many there are."""

import functools
from typing import Any, Callable, Dict

from rabaska.training.watching.watcher import Watcher


def _keras(module: Any, watcher: Watcher) -> None:
    count = watcher.count

    def epoch_begins(callbacks: Any, epoch: int, *_: Any) -> None:
        if not count.told:
            count.told, count.first_epoch = True, epoch
        wanted = callbacks.params or {}
        count.length, count.total, count.batch = wanted.get("steps"), wanted.get("epochs"), 0

    def batch_ends(_callbacks: Any, batch: int, *_: Any) -> None:
        count.batches += batch + 1 - count.batch  # several at once with steps_per_execution
        count.batch = batch + 1
        count.steps += 1
        if count.clock() >= count.due:
            watcher.tell()

    def epoch_ends(_callbacks: Any, epoch: int, *_: Any) -> None:
        count.epochs, count.batch = epoch + 1 - (count.first_epoch or 0), 0

    kind = module.CallbackList
    kind.on_epoch_begin = _telling(kind.on_epoch_begin, epoch_begins, watcher)
    kind.on_train_batch_end = _telling(kind.on_train_batch_end, batch_ends, watcher)
    kind.on_epoch_end = _telling(kind.on_epoch_end, epoch_ends, watcher)


def _lightning(module: Any, watcher: Watcher) -> None:
    kind = module._FitLoop
    kind.__init__ = _telling(kind.__init__, lambda loop, *_: watcher.wants(loop), watcher)


def _huggingface(module: Any, watcher: Watcher) -> None:
    kind = module.TrainingArguments
    kind.__post_init__ = _telling(kind.__post_init__, watcher.wants, watcher)


def _telling(
    act: Callable[..., Any], told: Callable[..., None], watcher: Watcher
) -> Callable[..., Any]:
    """`act`, of which `told` is told afterwards."""

    @functools.wraps(act)
    def acting(*given: Any, **named: Any) -> Any:
        result = act(*given, **named)
        watcher.safely(told, *given)
        return result

    return acting


KNOWN: Dict[str, Callable[[Any, Watcher], None]] = {
    "keras.src.callbacks.callback_list": _keras,
    "lightning.pytorch.loops.fit_loop": _lightning,
    "pytorch_lightning.loops.fit_loop": _lightning,
    "transformers.training_args": _huggingface,
}
