"""Snapshots written in the background, one at a time, by the commit protocol.

Checksums are computed by a second thread while the first one writes; both leave the interpreter
to the training, since they work on pieces of megabytes outside of it.
"""

import errno
import json
import os
import queue
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

from rabaska.node import files, partial_folder
from rabaska.node.checkpoints import commit

from . import sharded_state
from .snapshot_memory import StateSnapshot

TENSORS = "tensors.safetensors"
STATE = "state.json"

_O_DIRECT = getattr(os, "O_DIRECT", 0)


class SaveBegun(NamedTuple):
    making: partial_folder.PartialFolder
    written: sharded_state.Writing


class BackgroundSave(NamedTuple):
    """What is to become one checkpoint."""

    step: int
    tensors: StateSnapshot
    state: Any  # values for JSON
    about: Dict[str, Any]  # for people, and for whoever looks without loading
    before: Callable[[], None]  # makes durable what the checkpoint relies on
    begun: Optional[SaveBegun] = None  # what all ranks write, and the folder they write it to


class CheckpointWriter:
    """A thread that waits for saves: starting one for each would make the training wait for it."""

    def __init__(self, folder: str, keep: int) -> None:
        self._folder = folder
        self._keep = max(2, keep)
        self._saves: "queue.SimpleQueue[Union[BackgroundSave, sharded_state.Writing, None]]" = (
            queue.SimpleQueue()
        )
        self._idle = threading.Event()
        self._idle.set()
        self._thread: Optional[threading.Thread] = None
        self._problem: Optional[BaseException] = None
        self.seconds = 0.0  # that the last save took

    def busy(self) -> bool:
        return not self._idle.is_set()

    def start(self, save: Union[BackgroundSave, sharded_state.Writing]) -> None:
        """Begin to write a checkpoint, or one rank's part of it.

        Waits for the save before, if that is still being written.
        """
        self.wait()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="rabaska-writer", daemon=True)
            self._thread.start()
        self._idle.clear()
        self._saves.put(save)

    def wait(self) -> None:
        self._idle.wait()

    def close(self) -> None:
        """Finish what is being written, and end the thread."""
        self.wait()
        if self._thread is not None:
            self._saves.put(None)
            self._thread.join()
            self._thread = None

    def problem(self) -> Optional[BaseException]:
        """Why the last save failed; told once."""
        problem, self._problem = self._problem, None
        return problem

    def _work(self) -> None:
        while True:
            save = self._saves.get()
            if save is None:
                return
            began = time.monotonic()
            try:
                if isinstance(save, sharded_state.Writing):
                    save.parts()
                else:
                    write(self._folder, save)
                    commit.prune(self._folder, self._keep)
            except BaseException as problem:  # it is raised in the training's own thread
                self._problem = problem
            self.seconds = time.monotonic() - began
            self._idle.set()


def write(parent: str, save: BackgroundSave) -> bool:
    """Make one checkpoint; False when there is one of that step already."""
    target = os.path.join(parent, commit.folder_name(save.step))
    if save.begun is None and is_made(parent, save.step):
        return False
    making = save.begun.making if save.begun else begin(parent, save.step)
    try:
        parts = save.begun.written.parts() if save.begun else []
        parts += [_write_tensors(making.path, save.tensors), _write_state(making.path, save.state)]
        save.before()
        commit.seal(making.path, save.step, parts, save.about)
    except BaseException:
        partial_folder.abandon(making)
        raise
    return partial_folder.finish(making, target)


def is_made(parent: str, step: int) -> bool:
    target = os.path.join(parent, commit.folder_name(step))
    return os.path.isdir(target) and commit.check(target) is None


def begin(parent: str, step: int) -> partial_folder.PartialFolder:
    return partial_folder.begin(parent, commit.folder_name(step))


def _write_state(folder: str, state: Any) -> commit.CheckpointPart:
    content = json.dumps(state).encode("utf-8")
    files.write_whole(os.path.join(folder, STATE), content)
    return commit.CheckpointPart(STATE, len(content), commit.sums_of(memoryview(content)))


def _write_tensors(folder: str, snapshot: StateSnapshot) -> commit.CheckpointPart:
    sums: List[int] = []
    summing = threading.Thread(
        target=lambda: sums.extend(commit.sums_of(snapshot.content[: snapshot.size]))
    )
    summing.start()
    try:
        _write_whole(os.path.join(folder, TENSORS), snapshot)
    finally:
        summing.join()
    return commit.CheckpointPart(TENSORS, snapshot.size, sums)


def _write_whole(path: str, snapshot: StateSnapshot) -> None:
    """Past the page cache where the file system lets us: no second copy, no dirty pages."""
    descriptor = _opened(path)
    try:
        for place in range(0, len(snapshot.content), commit.PIECE):
            piece = snapshot.content[place : place + commit.PIECE]
            while piece:
                piece = piece[os.write(descriptor, piece) :]
        os.ftruncate(descriptor, snapshot.size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _opened(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags | _O_DIRECT, 0o644)
    except OSError as problem:
        if problem.errno != errno.EINVAL:
            raise
        return os.open(path, flags & ~os.O_EXCL, 0o644)
