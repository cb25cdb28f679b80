"""Upload from this computer what a tracker left in a run that could not reach its server."""

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from rabaska.node import files
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.records.series_files import copy_folder
from rabaska.remote import programs
from rabaska.settings.own_settings import wandb_consent, write_wandb_consent

_PATIENCE = 1800.0  # seconds for one log
_OFFLINE = "offline-run-"
_SAID = 300  # letters of what wandb complained


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
