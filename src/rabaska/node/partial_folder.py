"""Folders that appear whole or not at all, and the sweeping up after those who died half-way."""

import errno
import fcntl
import os
import re
import stat
import time
from typing import Callable, Iterator, List, NamedTuple, Optional

from .files import PARTIAL, sync_folder

_TEMPORARY_NAME = re.compile(r"\.[0-9a-f]{12}" + re.escape(PARTIAL) + r"\Z")
_TEMPORARY_LENGTH = len(".") + 12 + len(PARTIAL)
_SPARED = 7 * 24 * 3600
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EINVAL)


class PartialFolder(NamedTuple):
    path: str
    lock: int  # held while its maker, or a process that it forked, is alive


def temporary_name(name: str) -> str:
    """A name that nobody else uses, and that `sweep` knows for one of ours."""
    return "{}.{}{}".format(name, os.urandom(6).hex(), PARTIAL)


def is_temporary(name: str) -> bool:
    return _TEMPORARY_NAME.search(name) is not None


def begin(parent: str, name: str) -> PartialFolder:
    """A new folder of our own in `parent`; call `finish` or `abandon` with it."""
    while True:
        path = os.path.join(parent, temporary_name(name))
        os.mkdir(path)
        # A sweeper may come between the making of the folder and its lock.
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        if _lock(lock) is not False and os.path.exists(path):
            return PartialFolder(path, lock)
        os.close(lock)


def finish(partial: PartialFolder, target: str, *, durable: bool = True) -> bool:
    """Rename `partial` to `target`; False, and nothing left, if somebody else was quicker.

    What need not be `durable` may be gone again after the power failed.
    """
    try:
        os.rename(partial.path, target)
    except OSError as problem:
        if problem.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        abandon(partial)
        return False
    os.close(partial.lock)
    if durable:
        sync_folder(os.path.dirname(target) or ".")
    return True


def set_aside(path: str) -> str:
    """Rename a folder to a name under which `sweep` removes it, if nobody does so before."""
    aside = os.path.join(os.path.dirname(path), temporary_name(os.path.basename(path)))
    os.rename(path, aside)
    return aside


def abandon(partial: PartialFolder) -> None:
    remove_tree(partial.path)
    os.close(partial.lock)


def release(partial: PartialFolder) -> None:
    """Go without removing it: `adopt` can find it, and `sweep` removes it one day."""
    os.close(partial.lock)


def adopt(parent: str, name: str) -> List[PartialFolder]:
    """Folders called `name` whose makers are dead; now they are ours to use and abandon."""
    found = []
    for path in _temporary_folders(parent):
        if os.path.basename(path)[:-_TEMPORARY_LENGTH] == name:
            taken = _take(path)
            if taken is not None:
                found.append(taken)
    return found


def sweep(parent: str, spare: Optional[Callable[[str], object]] = None) -> None:
    """Remove what makers that are dead left in `parent`; what others call partial is theirs.

    What `spare` says yes to is removed only when nobody came back for it in a week.
    """
    for path in _temporary_folders(parent):
        taken = _take(path)
        if taken is None:
            continue
        try:
            young = time.time() - os.stat(path).st_mtime < _SPARED
            if not (spare and young and spare(path)):
                remove_tree(path)
        finally:
            os.close(taken.lock)


def _temporary_folders(parent: str) -> Iterator[str]:
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        if is_temporary(name) and not os.path.islink(path) and os.path.isdir(path):
            yield path


def _take(path: str) -> Optional[PartialFolder]:
    """The folder, if no living process holds it."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:  # its maker has just finished
        return None
    if _lock(lock) and os.path.exists(path):
        return PartialFolder(path, lock)
    os.close(lock)
    return None


def _lock(descriptor: int) -> Optional[bool]:
    """Whether the folder is ours now; None where the file system knows no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        if problem.errno in _NO_LOCKS:
            return None
        if problem.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def remove_tree(path: str) -> None:
    """Remove `path` and all below it, folders that are read-only included."""
    import shutil  # only here: it brings every compressor along

    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except PermissionError:
        _allow(path)
        for folder, names, _ in os.walk(path):
            for name in names:
                _allow(os.path.join(folder, name))
        shutil.rmtree(path)


def _allow(folder: str) -> None:
    if not os.path.islink(folder):
        os.chmod(folder, stat.S_IRWXU)
