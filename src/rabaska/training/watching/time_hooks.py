"""Hooks that tell where the time goes besides data and saves: logging, and waiting for others."""

import functools
import io
import os
import sys
import threading
from typing import Any, Callable, Dict

from rabaska.training.watching.counting import several
from rabaska.training.watching.watcher import Watcher

_WRITER = ("add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure")
_MORE = ("add_text", "add_embedding", "add_video", "add_audio", "add_tensor", "add_graph", "flush")


def logged(act: Callable[..., Any], watcher: Watcher) -> Callable[..., Any]:
    """`act`, whose time counts as logging; what it calls of that kind counts once.

    It holds on to nothing but its own variables: standard output is flushed at the very end.
    """
    count, clock = watcher.count, watcher.count.clock
    thread, main = threading.get_ident, threading.main_thread().ident

    @functools.wraps(act)
    def logging(*given: Any, **named: Any) -> Any:
        if count.aside or thread() != main:
            return act(*given, **named)
        count.aside = True
        began = clock()
        try:
            return act(*given, **named)
        finally:
            count.logging += clock() - began
            count.aside = count.off

    return logging


def _writers(module: Any, watcher: Watcher) -> None:
    kind = module.SummaryWriter
    for name in (*_WRITER, *_MORE):
        if callable(getattr(kind, name, None)):
            setattr(kind, name, logged(getattr(kind, name), watcher))
    if callable(getattr(kind, "flush", None)):
        kind.__init__ = _known(kind.__init__, kind.flush.__wrapped__, watcher)


def _tables(module: Any, watcher: Watcher) -> None:
    """Lightning's CSVLogger writes every hundredth step."""
    kind = module._ExperimentWriter
    kind.__init__ = _known(kind.__init__, kind.save, watcher)


def _known(
    make: Callable[..., None], flush: Callable[[Any], Any], watcher: Watcher
) -> Callable[..., None]:
    """Remember a log that is made, and how it is written: before each save of the program."""

    @functools.wraps(make)
    def __init__(log: Any, *given: Any, **named: Any) -> None:  # noqa: N807
        make(log, *given, **named)
        watcher.logs[log] = flush

    return __init__


def _wandb(module: Any, watcher: Watcher) -> None:
    module.Run.log = logged(module.Run.log, watcher)


def _mlflow(module: Any, watcher: Watcher) -> None:
    for name in ("log_metric", "log_metrics", "log_artifact", "log_figure", "log_image"):
        if callable(getattr(module, name, None)):
            setattr(module, name, logged(getattr(module, name), watcher))


def _printing(_module: Any, watcher: Watcher) -> None:
    """What is printed goes to a log on the cluster's storage."""
    stream = sys.stdout
    if type(stream) is io.TextIOWrapper and not stream.isatty():
        stream.write = logged(stream.write, watcher)  # type: ignore[method-assign]
        stream.flush = logged(stream.flush, watcher)  # type: ignore[method-assign]


def _backward(module: Any, watcher: Watcher) -> None:
    """The time from a batch to here is the process's own: from here on they wait for each other."""
    if not several(os.environ):
        return
    act, count, clock = module.backward, watcher.count, watcher.count.clock

    @functools.wraps(act)
    def backward(*given: Any, **named: Any) -> Any:
        if count.handed:
            count.forward += clock() - count.handed
            count.handed = 0.0
        return act(*given, **named)

    backward._rabaska = act  # type: ignore[attr-defined]
    module.backward = backward


TIME_HOOKS: Dict[str, Callable[[Any, Watcher], None]] = {
    "torch.utils.data.dataloader": _printing,
    "torch.autograd": _backward,
    "torch.utils.tensorboard.writer": _writers,
    "tensorboardX.writer": _writers,
    "lightning.fabric.loggers.csv_logs": _tables,
    "lightning_fabric.loggers.csv_logs": _tables,
    "wandb.sdk.wandb_run": _wandb,
    "mlflow.tracking.fluent": _mlflow,
}
