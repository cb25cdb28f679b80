"""Disks and folders of this computer that cannot be written: errors that say what to do."""

import errno
import os
import shutil
from pathlib import Path

from rabaska.errors import NoSpace, NotWritable, RabaskaError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_IN_THE_WAY = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY)
_OTHER_FOLDER = "choose another folder with `--to`"


def unwritable(problem: OSError, target: Path, other: str = _OTHER_FOLDER) -> RabaskaError:
    """The error for a file that could not be written below `target`; `other`: another way."""
    where = os.fsdecode(problem.filename2 or problem.filename or target)
    if problem.errno == errno.ENOTDIR:
        where = str(next((path for path in Path(where).parents if path.exists()), where))
    why = f"{problem.strerror or problem}: {where}"
    if problem.errno in _FULL:
        return _no_space(problem, target)
    if problem.errno in _FORBIDDEN:
        hint = f"make {target} writable for you, or {other}"
    elif problem.errno in _IN_THE_WAY:
        hint = f"move {where} out of the way, or {other}"
    elif problem.errno == errno.ENAMETOOLONG:
        hint = f"{other}, with a shorter path or on a disk that allows longer names"
    elif problem.errno == errno.ENOENT and problem.filename2 is None and _has_parent(where):
        hint = f"{Path(where).parent} allows no new files or folders; {other}"
    elif problem.errno == errno.ENOENT:
        hint = "it was removed meanwhile; run the command again"
    else:
        hint = f"if its disk is healthy, run the command again, or {other}"
    return NotWritable(f"{target} cannot be written to", why=why, hint=hint)


def _has_parent(where: str) -> bool:
    """Whether nothing vanished: some file systems, as /proc, say ENOENT to whoever makes a file."""
    return Path(where).parent.is_dir()


def _no_space(problem: OSError, target: Path) -> NoSpace:
    folder = next((path for path in (target, *target.parents) if path.exists()), Path.home())
    free = shutil.disk_usage(folder).free
    return NoSpace(
        f"no space left for {target}",
        why=f"{problem.strerror}; {free:,} bytes are free there",
        hint="free some space or choose another folder; complete files are kept, and "
        "the same command continues from there",
    )


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EIO,
    errno.ESTALE,
    errno.ENAMETOOLONG,
)


def disk_error(problem: OSError) -> RabaskaError | None:
    """What to say of a problem that is the computer's; None for one that may be our mistake."""
    if problem.filename is None or isinstance(problem.filename, int):
        return None
    where = os.fsdecode(problem.filename2 or problem.filename)
    if problem.errno in _DISK_FULL:
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
        hint="check its owner, its mode and the free space (`ls -ld`, `df`), or set RABASKA_HOME "
        "to another folder",
    )
