"""Packs onto node-local storage: as the folder they were, or as shards read in place."""

from typing import Callable, Optional

FILES = "files"
SHARDS = "shards"

Progress = Callable[[int, int], None]  # files and bytes staged so far


def stage(
    pack_folder: str, target_parent: str, mode: str = FILES, progress: Optional[Progress] = None
) -> str:
    """Stage the pack below `target_parent`; the path that the program shall read."""
    raise NotImplementedError


def remove(path: str) -> None:
    """Remove a staged folder, read-only folders included."""
    raise NotImplementedError
