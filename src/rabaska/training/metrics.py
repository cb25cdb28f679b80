"""metrics.jsonl: one line for each step, cut back to the checkpoint when a run continues."""

import json
import os
import threading
from typing import Any, Dict

from rabaska.node.saves.commit import NO_SPACE

NAME = "metrics.jsonl"


class Metrics:
    """Lines are handed to the system at once, and made durable before each checkpoint.

    On a full disk they wait in memory: no loss is missing once there is room again.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._waiting = b""
        self._lock = threading.Lock()

    def cut(self, size: int) -> None:
        """Forget what was logged after the checkpoint: those steps are made again."""
        if os.fstat(self._file).st_size > size:
            os.ftruncate(self._file, size)

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
