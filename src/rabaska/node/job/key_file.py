"""The file by which the nodes of a job find each other: a key, and the work that each shall do."""

import json
import os
import tempfile
import uuid
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Tuple

from .. import own_program

_PREFIX = "meeting-"
_LONGEST_MEETING = 3600.0  # seconds; whoever waits for nodes gives up long before


@contextmanager
def key_file(work: Dict[str, Any]) -> Iterator[Tuple[str, str]]:
    """The file with a key and the work, and the key.

    All nodes see the file and only their user may read it: variables may be secrets, and the
    network is not encrypted.
    """
    program = own_program.program_path()
    folder = os.path.dirname(program) if os.path.isfile(program) else None
    key = uuid.uuid4().hex + uuid.uuid4().hex
    descriptor, path = tempfile.mkstemp(prefix=_PREFIX, dir=folder)
    try:
        _remove_left(path)
        with os.fdopen(descriptor, "w") as stream:
            json.dump({"key": key, "work": work}, stream)
            stream.flush()
            os.fsync(stream.fileno())
        yield path, key
    finally:
        os.unlink(path)


def _remove_left(path: str) -> None:
    """Remove what those left beside `path` who were killed before all nodes had come: secrets,
    perhaps. No clock but that of the storage tells how old it is."""
    folder, now = os.path.dirname(path), os.stat(path).st_mtime
    for name in os.listdir(folder):
        other = os.path.join(folder, name)
        try:
            if name.startswith(_PREFIX) and os.lstat(other).st_mtime < now - _LONGEST_MEETING:
                os.unlink(other)
        except OSError:
            continue  # another was quicker, or it is somebody else's
