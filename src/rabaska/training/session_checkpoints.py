"""The checkpoints and the log of a session: written in the background, read at its beginning."""

import contextlib
import json
import os
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional

from rabaska.node import files, partial_folder
from rabaska.node.checkpoints import commit
from rabaska.node.checkpoints.commit import NO_SPACE

from . import (
    checkpoint_writer,
    full_state,
    lazy_imports,
    random_state,
    read_checkpoint,
    sharded_state,
)
from .checkpoint_writer import BackgroundSave, CheckpointWriter
from .errors import NotSaveable, SaveFailed
from .process_group import ProcessGroup
from .progress import Asked
from .snapshot_memory import SnapshotMemory

NAME = "metrics.jsonl"


class Metrics:
    """Lines are handed to the system at once, and made durable before each checkpoint.

    On a full disk they wait in memory: no loss is missing once there is room again.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = self._opened()
        self._waiting = b""
        self._lock = threading.Lock()

    def _opened(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def cut(self, size: int) -> None:
        """Forget what was logged after the checkpoint: those steps are made again."""
        if os.fstat(self._file).st_size > size:
            os.ftruncate(self._file, size)

    def begin_anew(self) -> None:
        """Keep what a training logged whose checkpoints are all gone, under another name."""
        if not os.fstat(self._file).st_size:
            return
        number = 1
        while os.path.lexists("{}.{}".format(self.path, number)):
            number += 1
        os.rename(self.path, "{}.{}".format(self.path, number))
        os.close(self._file)
        self._file = self._opened()

    def size(self) -> int:
        """Bytes, with those that wait."""
        with self._lock:
            return os.fstat(self._file).st_size + len(self._waiting)

    def log(self, line: Dict[str, Any]) -> None:
        with self._lock:
            self._waiting += (json.dumps(line) + "\n").encode("utf-8")
            self._flush_if_there_is_room()

    def _flush(self) -> None:
        while self._waiting:
            self._waiting = self._waiting[os.write(self._file, self._waiting) :]

    def _flush_if_there_is_room(self) -> None:
        try:
            self._flush()
        except OSError as problem:
            if problem.errno not in NO_SPACE:
                raise

    def sync(self) -> None:
        with self._lock:
            self._flush()
        os.fsync(self._file)

    def close(self) -> None:
        self._flush_if_there_is_room()
        os.close(self._file)


def log_folder(folder: str, environment: Mapping[str, str]) -> str:
    """Where the log of the session in `folder` is: each session cuts its own, and no other one.

    In a job that is the output, or for a session in a folder of its own one in the output.
    """
    output = environment.get("RABASKA_OUTPUT")
    if not output or _inside(folder, output):
        return folder
    kept = environment.get("RABASKA_CHECKPOINTS") or folder
    for above in (kept, os.getcwd()):
        if _inside(folder, above):
            return os.path.normpath(os.path.join(output, os.path.relpath(folder, above)))
    return os.path.join(output, os.path.basename(folder))


def _inside(folder: str, above: str) -> bool:
    return os.path.commonpath([folder, os.path.abspath(above)]) == os.path.abspath(above)


DONE = "DONE.json"

Own = Dict[str, Any]  # what the session itself wants back


class SessionCheckpoints:
    """Of one folder; the first rank writes, and every rank knows what is there."""

    def __init__(
        self, folder: str, keep: int, ranks: ProcessGroup, say: Callable[[str], None]
    ) -> None:
        self.folder = folder
        self._ranks = ranks
        self._say = say
        self._writer = CheckpointWriter(folder, keep)
        self._memory = SnapshotMemory()
        self._mesh: Any = None  # of processes over which some of the state is spread
        self._others = ranks  # the ranks, as they speak while the training goes on
        self._log = Metrics(self._prepared()) if ranks.first else None

    def _prepared(self) -> str:
        os.makedirs(self.folder, exist_ok=True)
        place = log_folder(self.folder, os.environ)
        os.makedirs(place, exist_ok=True)
        return os.path.join(place, NAME)

    def newest(self, parts: full_state.Parts) -> Optional[read_checkpoint.ReadCheckpoint]:
        """The newest whole one, for every rank; the log is cut back to it."""
        self._mesh = sharded_state.mesh_of(parts)
        self._others = self._ranks.apart() if self._mesh is not None else self._ranks
        checkpoint = (
            read_checkpoint.newest(self.folder, self._say, self._mesh)
            if self._ranks.first
            else None
        )
        path = self._ranks.from_first(checkpoint and checkpoint.path)
        if path is None:
            if self._log is not None:  # it is the first rank's
                self._log.begin_anew()
                files.remove_if_there(os.path.join(self.folder, DONE))  # of an earlier training
            return None
        checkpoint = checkpoint or read_checkpoint.read(path, self._mesh)
        self.cut_log(checkpoint.state["session"]["metrics"])
        full_state.fits(checkpoint.state, parts, self._ranks.size)
        if checkpoint.sharded:
            sharded_state.read(checkpoint.path, checkpoint.sharded, self._ranks)
        return checkpoint

    def cut_log(self, size: int) -> None:
        if self._log is not None:
            self._log.cut(size)

    def log(self, line: Dict[str, Any]) -> None:
        if self._log is not None:
            self._log.log(line)

    def prepare(self, parts: full_state.Parts) -> None:
        """Make room for the state in memory, before the first save needs it."""
        if self._ranks.first:
            self._memory.prepare(sharded_state.split(full_state.encoded(parts, {}, [])[1])[0])

    def save(self, step: int, parts: full_state.Parts, own: Own) -> float:
        """Copy the state and begin to write it; when it began to cost the training time."""
        self.wait()  # what is being written is in the memory that is filled now
        began = time.monotonic()
        generators = self._ranks.gather(random_state.state())
        if self._mesh is not None:
            self._save_together(step, parts, own, generators)
        elif self._ranks.first:
            self._writer.start(self._snapshot(step, parts, own, generators))
        return began

    def _save_together(
        self, step: int, parts: full_state.Parts, own: Own, generators: List[random_state.State]
    ) -> None:
        """Every rank writes its own part into a folder that the first one begins and commits."""
        making = self._begun(step)
        folder = self._ranks.from_first(making and making.path)
        if folder is None:
            return
        spread = sharded_state.split(full_state.encoded(parts, {}, [])[1])[1]
        written = sharded_state.write(folder, spread, self._others)
        if making is None:
            self._writer.start(written)
            return
        save = self._snapshot(step, parts, own, generators)
        self._writer.start(save._replace(begun=checkpoint_writer.SaveBegun(making, written)))

    def _begun(self, step: int) -> Optional[partial_folder.PartialFolder]:
        """The folder that all ranks write to; None when there is nothing to write, or no room."""
        if not self._ranks.first or checkpoint_writer.is_made(self.folder, step):
            return None
        try:
            return checkpoint_writer.begin(self.folder, step)
        except OSError as problem:
            self._report(problem)
            return None

    def _snapshot(
        self, step: int, parts: full_state.Parts, own: Own, generators: List[random_state.State]
    ) -> BackgroundSave:
        assert self._log is not None
        own = dict(
            own,
            metrics=self._log.size(),
            threads=lazy_imports.torch().get_num_threads(),
            ranks=self._ranks.size,
        )
        text, tensors = full_state.encoded(parts, own, generators)
        tensors, spread = sharded_state.split(tensors)
        if spread and self._mesh is None:
            raise NotSaveable(
                "`{}` cannot be saved".format(min(spread)),
                why="it is sharded over processes, and no part of the session has such weights",
                hint="pass the sharded model itself to the session",
            )
        return BackgroundSave(step, self._memory.take(tensors), text, _about(own), self._log.sync)

    @property
    def seconds_to_write(self) -> float:
        return self._writer.seconds

    def busy(self) -> bool:
        return self._writer.busy()

    def wait(self) -> None:
        """Return when what is being written is durable; tell what went wrong."""
        self._writer.wait()
        self.surface()

    def surface(self) -> None:
        """Report what went wrong in the background."""
        problem = self._writer.problem()
        if problem is not None:
            self._report(problem)

    def _report(self, problem: BaseException) -> None:
        """A full disk is reported; anything else ends the training."""
        if isinstance(problem, OSError) and problem.errno in commit.NO_SPACE:
            self._say(
                "a checkpoint could not be saved: {}; training continues and older "
                "checkpoints are kept".format(problem.strerror)
            )
            return
        raise SaveFailed(
            "a checkpoint could not be saved in {}".format(self.folder),
            why="{}: {}".format(type(problem).__name__, problem),
            hint="earlier checkpoints are valid; start again to continue from them",
        ) from problem

    def is_saved(self, step: int) -> bool:
        """Whether that step is durable; for every rank what the first one finds."""
        return bool(
            self._ranks.from_first(
                self._ranks.first and checkpoint_writer.is_made(self.folder, step)
            )
        )

    def newest_step(self) -> int:
        return max((checkpoint.step for checkpoint in commit.newest_first(self.folder)), default=0)

    def finish(self, step: int, asked: Asked) -> None:
        """The training is over: say so for good, if its last step was saved."""
        last = os.path.join(self.folder, commit.folder_name(step))
        if self._ranks.first and os.path.isdir(last):
            files.write_json(os.path.join(self.folder, DONE), dict(asked._asdict(), step=step))

    def asked_at_end(self, step: int) -> Optional[Asked]:
        """What the training was asked for, if it was over after `step`; the first rank looks."""
        record: Dict[str, Any] = {}
        with contextlib.suppress(ValueError):
            record = files.read_json(os.path.join(self.folder, DONE)) or {}
        asked = (record.get("epochs"), record.get("max_steps"))
        found = self._ranks.from_first(asked if record.get("step") == step else None)
        return Asked(*found) if found else None

    def close(self) -> None:
        self._writer.close()
        if self._log is not None:
            self._log.close()


def _about(own: Own) -> Dict[str, Any]:
    """For people, and for whoever looks without loading."""
    epoch, batch = own["place"]
    about = {"epoch": epoch, "batch": batch, "torch": lazy_imports.torch().__version__}
    for name in ("RABASKA_RUN", "RABASKA_JOB"):
        about[name.lower()[8:]] = os.environ.get(name)
    return about
