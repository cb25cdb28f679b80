"""The checkpoints and the log of a session: written in the background, read at its beginning."""

import os
import time
from typing import Any, Callable, Dict, List, Optional

from rabaska.node import files, partial
from rabaska.node.saves import commit
from rabaska.training import generators, lazily, metrics, reading, sharded, state, writer
from rabaska.training.crew import Crew
from rabaska.training.memory import Memory
from rabaska.training.trouble import NotSaveable, SaveFailed
from rabaska.training.writer import Save, Writer

DONE = "DONE.json"

Own = Dict[str, Any]  # what the session itself wants back


class Checkpoints:
    """Of one folder; the first rank writes, and every rank knows what is there."""

    def __init__(self, folder: str, keep: int, crew: Crew, say: Callable[[str], None]) -> None:
        self.folder = folder
        self._crew = crew
        self._say = say
        self._writer = Writer(folder, keep)
        self._memory = Memory()
        self._mesh: Any = None  # of processes over which some of the state is spread
        self._others = crew  # the ranks, as they speak while the training goes on
        self._log = metrics.Metrics(self._prepared()) if crew.first else None

    def _prepared(self) -> str:
        os.makedirs(self.folder, exist_ok=True)
        output = os.environ.get("RABASKA_OUTPUT") or self.folder
        os.makedirs(output, exist_ok=True)
        return os.path.join(output, metrics.NAME)

    def newest(self, parts: state.Parts) -> Optional[reading.Found]:
        """The newest whole one, for every rank; the log is cut back to it."""
        self._mesh = sharded.mesh_of(parts)
        self._others = self._crew.apart() if self._mesh is not None else self._crew
        found = reading.newest(self.folder, self._say, self._mesh) if self._crew.first else None
        path = self._crew.from_first(found and found.path)
        if path is None:
            self.cut_log(0)
            return None
        found = found or reading.read(path, self._mesh)
        self.cut_log(found.state["session"]["metrics"])
        state.fits(found.state, parts, self._crew.size)
        if found.sharded:
            sharded.read(found.path, found.sharded, self._crew)
        return found

    def cut_log(self, size: int) -> None:
        if self._log is not None:
            self._log.cut(size)

    def log(self, line: Dict[str, Any]) -> None:
        if self._log is not None:
            self._log.log(line)

    def prepare(self, parts: state.Parts) -> None:
        """Make room for the state in memory, before the first save needs it."""
        if self._crew.first:
            self._memory.prepare(sharded.parted(state.encoded(parts, {}, [])[1])[0])

    def save(self, step: int, parts: state.Parts, own: Own) -> float:
        """Copy the state and begin to write it; when it began to cost the training time."""
        self.wait()  # what is being written is in the memory that is filled now
        began = time.monotonic()
        each = self._crew.gather(generators.state())
        if self._mesh is not None:
            self._save_together(step, parts, own, each)
        elif self._crew.first:
            self._writer.start(self._snapshot(step, parts, own, each))
        return began

    def _save_together(
        self, step: int, parts: state.Parts, own: Own, each: List[generators.State]
    ) -> None:
        """Every rank writes its own part into a folder that the first one begins and commits."""
        making = self._begun(step)
        folder = self._crew.from_first(making and making.path)
        if folder is None:
            return
        spread = sharded.parted(state.encoded(parts, {}, [])[1])[1]
        written = sharded.write(folder, spread, self._others)
        if making is None:
            self._writer.start(written)
            return
        save = self._snapshot(step, parts, own, each)
        self._writer.start(save._replace(begun=writer.Begun(making, written)))

    def _begun(self, step: int) -> Optional[partial.PartialFolder]:
        """The folder that all ranks write to; None when there is nothing to write, or no room."""
        if not self._crew.first or writer.is_made(self.folder, step):
            return None
        try:
            return writer.begin(self.folder, step)
        except OSError as problem:
            self._tell(problem)
            return None

    def _snapshot(
        self, step: int, parts: state.Parts, own: Own, each: List[generators.State]
    ) -> Save:
        assert self._log is not None
        own = dict(
            own,
            metrics=self._log.size(),
            threads=lazily.torch().get_num_threads(),
            ranks=self._crew.size,
        )
        text, tensors = state.encoded(parts, own, each)
        tensors, spread = sharded.parted(tensors)
        if spread and self._mesh is None:
            raise NotSaveable(
                "`{}` cannot be saved".format(min(spread)),
                why="it is spread over processes, and no part that was given has such weights",
                hint="give the sharded model itself to the session",
            )
        return Save(step, self._memory.take(tensors), text, _about(own), self._log.sync)

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
        """Tell what went wrong in the background."""
        problem = self._writer.problem()
        if problem is not None:
            self._tell(problem)

    def _tell(self, problem: BaseException) -> None:
        """A full disk is told; anything else ends the training."""
        if isinstance(problem, OSError) and problem.errno in commit.NO_SPACE:
            self._say(
                "a checkpoint could not be saved: {}; the training goes on and the older "
                "checkpoints stay".format(problem.strerror)
            )
            return
        raise SaveFailed(
            "a checkpoint could not be saved in {}".format(self.folder),
            why="{}: {}".format(type(problem).__name__, problem),
            hint="the checkpoints before it are whole; start again to continue from them",
        ) from problem

    def is_saved(self, step: int) -> bool:
        """Whether that step is durable; for every rank what the first one finds."""
        return bool(self._crew.from_first(self._crew.first and writer.is_made(self.folder, step)))

    def newest_step(self) -> int:
        return max((made.step for made in commit.newest_first(self.folder)), default=0)

    def finish(self, step: int, epochs: Optional[int]) -> None:
        """The training is over: say so for good, if its last step was saved."""
        last = os.path.join(self.folder, commit.folder_name(step))
        if self._crew.first and os.path.isdir(last):
            files.write_json(os.path.join(self.folder, DONE), {"step": step, "epochs": epochs})

    def is_done(self, step: int) -> bool:
        """Whether the training was over after `step`; for every rank what the first one finds."""
        try:
            told = files.read_json(os.path.join(self.folder, DONE)) or {}
        except ValueError:
            told = {}
        return bool(self._crew.from_first(told.get("step") == step))

    def close(self) -> None:
        self._writer.close()
        if self._log is not None:
            self._log.close()


def _about(own: Own) -> Dict[str, Any]:
    """For people, and for whoever looks without loading."""
    epoch, batch = own["place"]
    about = {"epoch": epoch, "batch": batch, "torch": lazily.torch().__version__}
    for name in ("RABASKA_RUN", "RABASKA_JOB"):
        about[name.lower()[8:]] = os.environ.get(name)
    return about
