"""When the disk is full, it is said so."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rabaska.errors import NoSpace

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def space_needed(store: Path, act: str) -> Iterator[None]:
    """Turn a full disk or quota into NoSpace; any other error stays what it is."""
    try:
        yield
    except OSError as problem:
        if problem.errno not in _FULL:
            raise
        raise NoSpace(
            f"no space left to {act}",
            why=f"{problem.strerror} in {store}",
            hint="free some space, or set RABASKA_HOME to a folder on a larger disk",
        ) from problem
