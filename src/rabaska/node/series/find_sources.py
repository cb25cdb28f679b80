"""Finds the files in which a program leaves numbers: below its code folder and its output."""

import os
from typing import Dict, Iterator, List, Optional, Sequence, Tuple, Type

from . import tables
from .event_files import EventFile
from .sources import Source
from .wandb_log import WandbLog

MOST_ENTRIES = 50000  # files and folders that are looked at in one search
MOST_FILES = 500  # that are read
_DEEPEST = 10  # folders below each other
_NO_LOGS = {".git", "__pycache__", "node_modules", ".venv", "venv", "site-packages", ".cache"}
_ROWS = (".jsonl", ".ndjson", ".json", ".txt", ".log")
_TABLES = (".csv", ".tsv")
_LARGEST_ROWS = 1 << 30  # bytes


def kind_of(path: str) -> Optional[Type[Source]]:
    """How a file is read; None for one that holds no numbers, or none yet."""
    name = os.path.basename(path)
    if "tfevents" in name and not name.endswith(".profile-empty"):
        return EventFile
    if name.endswith(".wandb"):
        return WandbLog
    if name == "trainer_state.json":
        return tables.TrainerState
    if name.endswith(_TABLES):
        return tables.CsvTable if tables.columns_of(path)[0] else None
    if name.endswith(_ROWS) and not name.startswith("."):
        return tables.JsonLines if tables.is_rows(path) else None
    return None


def is_candidate(name: str) -> bool:
    return "tfevents" in name or name.endswith((".wandb",) + _TABLES + _ROWS)


def find(roots: Sequence[str]) -> Dict[str, str]:
    """By its name below a root, the path of each file that may hold numbers; earlier roots first.

    What lies in the code folder is copied to the output while the program runs: it has one name.
    """
    found: Dict[str, str] = {}
    for root in roots:
        for path in _below(root):
            if is_candidate(os.path.basename(path)):
                found.setdefault(os.path.relpath(path, root), path)
    return found


def _below(root: str) -> Iterator[str]:
    left = MOST_ENTRIES
    folders: List[Tuple[str, int]] = [(root, 0)]
    while folders and left > 0:
        folder, depth = folders.pop(0)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        left -= len(entries)
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _NO_LOGS and depth < _DEEPEST:
                        folders.append((entry.path, depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    yield entry.path
            except OSError:
                continue
