"""The watcher of one process: what it counts, where it tells it, and how it steps aside."""

import atexit
import json
import os
import time
import weakref
from typing import Any, Callable, List, Mapping, MutableMapping, Optional, Tuple

from rabaska.training.watching.counting import Count

from .counting import Lines

_SLOW = 1.0  # seconds
_FLUSHED = 0.2  # seconds: who saves more often than that writes no checkpoints
_MOST = 10_000  # lines of one process; a program that saves more often is known by its names


class SavedFiles:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._path = environment.get("RABASKA_SAVED", "")
        self._job = int(environment.get("RABASKA_JOB") or 0)
        self._places = _places(environment)
        self._left = _MOST
        self._last: Optional[Tuple[str, int]] = None

    def note(self, path: Any, steps: int) -> None:
        """Before the first step nothing is saved that a training could go on from."""
        name = getattr(path, "name", path) if hasattr(path, "write") else path
        if not self._path or not steps or self._left <= 0:
            return
        if not isinstance(name, (str, bytes, os.PathLike)):
            return  # memory, or a file without a name
        written = os.path.realpath(os.fsdecode(name))
        relative = self._relative(written)
        # What writes piece by piece to one open file says so for each of them.
        if relative is None or self._last == (written, steps):
            return
        self._last = written, steps
        self._left -= 1
        try:
            told = {"path": relative, "mtime_ns": os.stat(written).st_mtime_ns, "steps": steps}
            self._append(json.dumps(dict(told, job=self._job)) + "\n")
        except OSError:
            pass  # no space, or the run is another job's by now

    def _relative(self, written: str) -> Optional[str]:
        for folder, name in self._places:
            if written.startswith(folder + os.sep):
                inside = os.fsencode(os.path.relpath(written, folder))
                return "{}/{}".format(name, inside.decode("utf-8", "surrogateescape"))
        return None

    def _append(self, line: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.write(descriptor, line.encode("ascii"))
        finally:
            os.close(descriptor)


def _places(environment: Mapping[str, str]) -> List[Tuple[str, str]]:
    """Folders whose content outlives the job, and what each is called in what is carried."""
    local = environment.get("RABASKA_LOCAL", "")
    told = [
        (environment.get("RABASKA_OUTPUT", ""), "output"),
        (environment.get("RABASKA_CHECKPOINTS", ""), "checkpoints"),
        (local and os.path.join(local, "code"), "output"),  # what is beside it is brought there
    ]
    return [(os.path.realpath(folder), name) for folder, name in told if folder]


# What programs call the number of epochs that they want.
_EPOCHS = ("epochs", "num_epochs", "n_epochs", "max_epochs", "nb_epochs", "num_train_epochs")


class Watcher:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self.count = Count()
        self.hook: Any = None  # on the optimizers, as long as nothing is compiled
        self._lines = Lines(environment)
        self._files = SavedFiles(environment)
        self._slow = True  # as the last save was; nobody knows how the first one is
        self.logs: MutableMapping[Any, Callable[[Any], Any]] = weakref.WeakKeyDictionary()
        self._flushed = 0.0  # by the clock
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

    def save_begins(self) -> None:
        """Say so, unless the last one was quick: nobody would see it."""
        self.safely(self._flush_logs)
        if self._slow:
            self.safely(self._lines.save_begins, self.count)

    def _flush_logs(self) -> None:
        """Have trackers write what they keep back: who resumes here logs no earlier step again."""
        now = self.count.clock()
        if not self.logs or 0 <= now - self._flushed < _FLUSHED:
            return
        self._flushed = now
        for log in list(self.logs):
            try:
                self.logs[log](log)
            except Exception:
                continue  # the program will be told itself

    def saved(self, seconds: float, path: Any = None) -> None:
        """A save is over; `path` is where, if it may be the state of the training."""
        self.safely(self.count.save, seconds)
        if self._slow:
            self.tell()
        self._slow = seconds >= _SLOW
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
    from . import framework_hooks, time_hooks, whole_saves

    for known in (
        whole_saves.KNOWN,
        framework_hooks.PYTORCH_HOOKS,
        framework_hooks.FRAMEWORK_HOOKS,
        time_hooks.TIME_HOOKS,
    ):
        attach = known.get(module.__name__)
        if attach is not None:
            attach(module, watcher)
