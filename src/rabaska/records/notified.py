"""What was told to somebody already, so that each thing is told once, whoever tells it."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SENT, _TRIED = b"sent", b"tried"
_AGAIN = 300.0  # seconds after an attempt that failed, or was never finished


class Notified:
    """Things told, by key, each a small file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def since(self, settings: Path) -> float:
        """When somebody first wanted to be told: what happened before is told to nobody.

        That is when the settings were written, as they were when they were first read.
        """
        marker = self._folder / "since"
        if not marker.exists():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            marker.touch()
            written = settings.stat().st_mtime
            os.utime(marker, (written, written))
        return marker.stat().st_mtime

    def claim(self, key: str) -> bool:
        """Whether it is ours to tell; say `sent` when it was told."""
        file = self._folder / key
        with self._alone():
            try:
                told = file.read_bytes() == _SENT
                fresh = time.time() - file.stat().st_mtime < _AGAIN
            except FileNotFoundError:
                told = fresh = False
            if told or fresh:
                return False
            file.write_bytes(_TRIED)
            return True

    def sent(self, key: str) -> None:
        (self._folder / key).write_bytes(_SENT)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
