"""The watcher of one process: what it counts, where it tells it, and how it steps aside."""

import atexit
import os
import time
from typing import Any, Callable, Mapping

from rabaska.training.watching.counting import Count

from .counting import Lines
from .saved_files import SavedFiles

# What programs call the number of epochs that they want.
_EPOCHS = ("epochs", "num_epochs", "n_epochs", "max_epochs", "nb_epochs", "num_train_epochs")


class Watcher:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self.count = Count()
        self.hook: Any = None  # on the optimizers, as long as nothing is compiled
        self._lines = Lines(environment)
        self._files = SavedFiles(environment)
        os.register_at_fork(after_in_child=self.count.begin)
        atexit.register(self.tell)

    def attach(self, module: Any) -> None:
        """Have `module`, which the program just imported, tell what it does."""
        self.safely(_attach, self, module)

    def safely(self, act: Callable[..., Any], *given: Any) -> None:
        """What goes wrong with us is no concern of the program: then it is watched no more."""
        if self.count.off:
            return
        try:
            act(*given)
        except Exception as problem:
            self.give_up(problem)

    def give_up(self, problem: Exception) -> None:
        if self.count.off:
            return
        self.count.off = self.count.aside = True
        said = "{}: {}".format(type(problem).__name__, problem)
        try:
            self._lines.append({"time": round(time.time(), 3), "off": said})
        except Exception:
            return

    def saved(self, seconds: float, path: Any = None) -> None:
        """A save is over; `path` is where, if it may be the state of the training."""
        self.safely(self.count.save, seconds)
        if path is not None:
            self.safely(self._files.note, path, self.count.steps)

    def wants(self, asked: Any) -> None:
        """Note how many epochs there shall be, if `asked` has a word for it."""
        for name in _EPOCHS:
            value = getattr(asked, name, None)
            if isinstance(value, (int, float)) and value > 0:
                self.count.total = value

    def tell(self) -> None:
        self.safely(self._lines.write, self.count)


def _attach(watcher: Watcher, module: Any) -> None:
    from . import framework_hooks, whole_saves

    for known in (
        whole_saves.KNOWN,
        framework_hooks.PYTORCH_HOOKS,
        framework_hooks.FRAMEWORK_HOOKS,
    ):
        attach = known.get(module.__name__)
        if attach is not None:
            attach(module, watcher)
