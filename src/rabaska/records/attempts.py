"""Attempts at a run of which no run came: commands without a name then mean an earlier one."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rabaska.records.home import Home


@contextmanager
def attempt(home: Home, project: Path | None) -> Iterator[None]:
    """Note that a run of the project is tried; if all goes well, there is nothing to note."""
    file = _file(home, project) if project else None
    # A note is not worth a failed run.
    if file:
        with suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.touch()
    yield
    if file:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def failed_attempt(home: Home, project: Path | None) -> float:
    """When a run of the project was tried last, if no run came of it; else 0.0."""
    try:
        return _file(home, project).stat().st_mtime if project else 0.0
    except OSError:
        return 0.0


def _file(home: Home, project: Path) -> Path:
    return home.seen / f"attempt-{zlib.crc32(str(project).encode()):08x}"
