"""A disk or folder of this computer that does not let us work, whichever command met it."""

import errno
import os

from rabaska.errors import NoSpace, NotWritable, RabaskaError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (
    errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ESTALE, errno.ENAMETOOLONG,
)  # fmt: skip


def trouble(problem: OSError) -> RabaskaError | None:
    """What to say of a problem that is the computer's; None for one that may be our mistake."""
    if problem.filename is None or isinstance(problem.filename, int):
        return None
    where = os.fsdecode(problem.filename2 or problem.filename)
    if problem.errno in _FULL:
        return NoSpace(
            f"no space left for {where}",
            why=problem.strerror or "",
            hint="free some space, or set RABASKA_HOME to a folder on a larger disk",
        )
    if problem.errno not in _REFUSED:
        return None
    return NotWritable(
        f"{where} cannot be read or written",
        why=problem.strerror or "",
        hint="see who owns it and what its disk allows (`ls -ld`, `df`); RABASKA_HOME may name "
        "another folder for what rabaska keeps",
    )
