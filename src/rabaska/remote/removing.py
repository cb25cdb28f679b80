"""Removing what is in the way, be it a file, a link or a folder."""

import shutil
from pathlib import Path


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
