"""Hooks into PyTorch, Keras and others: steps, epochs, and waiting for data."""

import argparse
import functools
import sys
import threading
import time
from typing import Any, Callable, Dict, List

from rabaska.training.watching.watcher import Watcher


def _optimizers(module: Any, watcher: Watcher) -> None:
    watcher.hook = module.register_optimizer_step_post_hook(counted(watcher))
    _arguments(argparse.ArgumentParser, watcher)


def counted(watcher: Watcher) -> Callable[[Any, Any, Any], None]:
    """What is called after every step of an optimizer."""
    count, clock = watcher.count, watcher.count.clock

    def stepped(optimizer: Any, _given: Any, _named: Any) -> None:
        if count.fresh:
            count.fresh = False
        elif id(optimizer) != count.optimizer:
            return
        elif clock() >= count.due:
            watcher.tell()  # with a loader, it is told when the next batch is there
        count.optimizer = id(optimizer)
        count.steps += 1

    return stepped


def _compiling(module: Any, watcher: Watcher) -> None:
    """Once torch.compile is used, ask at each step whether it reads along.

    What it reads becomes a graph, and must stay free of us. To ask costs as much as to count.
    """
    make = getattr(module, "compile", None)
    if make is None:
        return

    @functools.wraps(make)
    def compile(*given: Any, **named: Any) -> Any:  # noqa: A001
        watcher.safely(_step_aside, module, watcher)
        return make(*given, **named)

    module.compile = compile


def _step_aside(torch: Any, watcher: Watcher) -> None:
    if watcher.hook is None:
        return
    count_step = counted(watcher)

    def stepped(*given: Any) -> None:
        if not torch.compiler.is_dynamo_compiling():
            count_step(*given)

    watcher.hook.remove()
    backward = getattr(torch.autograd, "backward", None)
    torch.autograd.backward = getattr(backward, "_rabaska", backward)
    sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(stepped)
    watcher.hook = None  # once is enough


def _arguments(parser: Any, watcher: Watcher) -> None:
    parse = parser.parse_known_args

    @functools.wraps(parse)
    def parse_known_args(*given: Any, **named: Any) -> Any:
        parsed = parse(*given, **named)
        watcher.safely(watcher.wants, parsed[0])
        return parsed

    parser.parse_known_args = parse_known_args


def _loaders(module: Any, watcher: Watcher) -> None:
    iterators, loaders = module._BaseDataLoaderIter, module.DataLoader
    iterators.__next__ = timed(iterators.__next__, watcher)
    loaders.__iter__ = _begun(loaders.__iter__, watcher)


def _begun(begin: Callable[[Any], Any], watcher: Watcher) -> Callable[[Any], Any]:
    """Workers are started here, which is waiting for data, too."""
    count, main = watcher.count, threading.main_thread().ident

    @functools.wraps(begin)
    def __iter__(loader: Any) -> Any:  # noqa: N807
        if count.aside or threading.get_ident() != main:
            return begin(loader)
        count.aside = True
        began = count.clock()
        iterator = None
        try:
            iterator = begin(loader)
            return iterator
        finally:
            count.aside = count.off
            took = count.clock() - began
            count.waiting += took
            count.starting += took
            count.begun = id(iterator), took
            if count.began is None:
                count.began = began

    return __iter__


def timed(advance: Callable[[Any], Any], watcher: Watcher) -> Callable[[Any], Any]:
    """`__next__` of a loader's iterator, timed; every call in here costs each step of a program."""
    count, clock = watcher.count, watcher.count.clock
    thread, main = threading.get_ident, threading.main_thread().ident
    processor = time.thread_time

    @functools.wraps(advance)
    def __next__(iterator: Any) -> Any:  # noqa: N807
        # What a thread prefetches delays nobody; a loader inside a loader is part of that one.
        if count.aside or thread() != main:
            return advance(iterator)
        count.aside = True
        # Asking for the processor's time takes longer than the rest: one batch stands for 16.
        busy = 0.0 if count.workers or iterator._num_yielded & 15 else processor()
        began = clock()
        try:
            batch = advance(iterator)
        except StopIteration:
            watcher.safely(count.exhausted, iterator, clock() - began)
            raise
        finally:
            count.handed = clock()
            waited = count.handed - began
            count.waiting += waited
            if busy:
                count.fetching += 16 * (processor() - busy)
            count.aside = count.off
        try:
            sweep = iterator._rabaska
        except AttributeError:
            watcher.safely(count.sweep, iterator, began)
        else:
            if sweep.then != count.steps:
                if not sweep.first:
                    watcher.safely(count.trains, sweep)
                sweep.then = count.steps
            sweep.waited += waited
            sweep.handed_out = iterator._num_yielded
        count.fresh = True
        if began >= count.due:
            watcher.tell()
        return batch

    return __next__


PYTORCH_HOOKS: Dict[str, Callable[[Any, Watcher], None]] = {
    "torch": _compiling,
    "torch.optim.optimizer": _optimizers,
    "torch.utils.data.dataloader": _loaders,
}


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

    def validation_begins(_callbacks: Any, *_: Any) -> None:
        testing[:] = [count.clock()] if count.steps else []

    def validation_ends(_callbacks: Any, *_: Any) -> None:
        if testing:
            count.validating += count.clock() - testing.pop()

    testing: List[float] = []
    kind = module.CallbackList
    kind.on_test_begin = _telling(kind.on_test_begin, validation_begins, watcher)
    kind.on_test_end = _telling(kind.on_test_end, validation_ends, watcher)
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


FRAMEWORK_HOOKS: Dict[str, Callable[[Any, Watcher], None]] = {
    "keras.src.callbacks.callback_list": _keras,
    "lightning.pytorch.loops.fit_loop": _lightning,
    "pytorch_lightning.loops.fit_loop": _lightning,
    "transformers.training_args": _huggingface,
}
