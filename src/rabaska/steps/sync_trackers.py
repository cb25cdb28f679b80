"""Upload from this computer what a tracker left in a run that could not reach its server."""

import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rabaska.domain.curves import Curve
from rabaska.errors import RabaskaError
from rabaska.node import files
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.records.series_files import copy_folder
from rabaska.remote import programs
from rabaska.remote.place import SourceGone
from rabaska.settings.own_settings import wandb_consent, write_wandb_consent
from rabaska.steps.connect import connect_for
from rabaska.steps.run_identity import confirm

_PATIENCE = 1800.0  # seconds for one log
_OFFLINE = "offline-run-"
_SAID = 300  # letters of what wandb complained
_LOGS = "output/wandb"  # where the jobs have W&B write them
_OFTEN = 60.0  # seconds from one upload of a run to the next


@dataclass(frozen=True)
class SyncResult:
    """What was done about W&B's offline logs that came with the results."""

    logs: int = 0  # that are new or grew
    synced: tuple[str, ...] = ()
    problem: str = ""
    unasked: bool = False  # whether nobody said yet that they may be uploaded


def sync_wandb(
    record: RunRecord, home: Home, folder: Path, *, sync: bool | None = None
) -> SyncResult:
    """Sync the logs below `folder` that grew; `sync` says so from now on, None as was said once."""
    if sync is not None:
        write_wandb_consent(home.folder, sync=sync)
    note = copy_folder(home, record) / "synced.json"
    known = _known(note)
    grown = {name: size for name, size in _logs(folder).items() if known.get(name) != size}
    if not grown:
        return SyncResult()
    said = wandb_consent(home.folder)
    if not said:
        return SyncResult(len(grown), unasked=said is None)
    done: list[str] = []
    for name, size in sorted(grown.items()):
        problem = _sync_one(folder / name)
        if problem:
            return SyncResult(len(grown), tuple(done), problem)
        done.append(name)
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.write_json(str(note), {**known, **{one: grown[one] for one in done}, name: size})
    return SyncResult(len(grown), tuple(done))


def _logs(folder: Path) -> dict[str, int]:
    """Folders of W&B's offline runs, and how large the log of each is."""
    found = {}
    for parent, _, names in os.walk(folder / "output"):
        if os.path.basename(parent).startswith(_OFFLINE):  # noqa: PTH119
            paths = [f"{parent}/{name}" for name in names if name.endswith(".wandb")]
            # A link may lead nowhere, or to something else than a log of this run.
            states = [os.lstat(path) for path in paths]
            sizes = [state.st_size for state in states if stat.S_ISREG(state.st_mode)]
            if sizes:
                found[os.path.relpath(parent, folder)] = sum(sizes)
    return found


def _known(note: Path) -> dict[str, int]:
    try:
        return files.read_json(str(note)) or {}
    except (OSError, ValueError):
        return {}


def _sync_one(folder: Path) -> str:
    """Why it could not be synced, in W&B's own words; "" when it was."""
    program = _program()
    if not program:
        return "this computer has no program `wandb`: `pip install wandb`, then `wandb login`"
    words = [program, "sync", "--include-synced", str(folder)]
    exit_code, said = programs.answer(words, _PATIENCE)
    if exit_code is None:
        return f"`wandb sync` did not end within {_PATIENCE / 60:.0f} minutes"
    return f"wandb said: {' '.join(said.split())[-_SAID:]}" if exit_code else ""


def _program() -> str:
    beside = Path(sys.executable).parent / "wandb"
    if programs.is_there("wandb"):
        return "wandb"
    return str(beside) if beside.exists() else ""


class LiveSync:
    """Uploads W&B's offline logs of runs that are watched, in a thread, for who has said so once.

    Only these logs are copied here for it. What went wrong is told once for each run.
    """

    def __init__(self, home: Home, complain: Callable[[str], None] = lambda _text: None) -> None:
        self.complain = complain
        self._home = home
        self._done: dict[str, tuple[int, float]] = {}  # points when a run was uploaded, and when
        self._told: set[str] = set()
        self._thread = threading.Thread()

    def look(self, record: RunRecord, curves: Mapping[str, Curve], *, is_over: bool) -> None:
        """Begin to upload what the run logged since the last time; returns at once."""
        points = sum(len(one) for one in curves.values() if one.source.startswith("wandb "))
        before, at = self._done.get(record.path, (0, 0.0))
        due = is_over or time.monotonic() - at >= _OFTEN
        if points <= before or not due or self._thread.is_alive():
            return
        try:
            if not wandb_consent(self._home.folder):
                return
        except RabaskaError:
            return  # other commands say what is wrong with the settings
        self._done[record.path] = points, time.monotonic()
        self._thread = threading.Thread(target=self._upload, args=(record,), daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait for an upload that is under way."""
        if self._thread.is_alive():
            self._thread.join()

    def _upload(self, record: RunRecord) -> None:
        folder = copy_folder(self._home, record) / "trackers"
        try:
            cluster = connect_for(record, self._home)
            confirm(record, cluster)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            cluster.place.bring(f"{record.path}/{_LOGS}", folder / _LOGS, cluster)
            problem = sync_wandb(record, self._home, folder).problem
        except SourceGone:
            return  # it logs elsewhere: `rabaska fetch` finds it
        except RabaskaError as trouble:
            problem = trouble.what
        if problem and record.path not in self._told:
            self._told.add(record.path)
            self.complain(f"{record.name} could not be synced to W&B: {problem}")
