"""Folders that appear whole or not at all, and the sweeping up after those who died half-way."""

import errno
import fcntl
import os
import re
import shutil
import stat
import uuid
from typing import NamedTuple, Optional

from .files import PARTIAL, sync_folder

_ODD_NAME = re.compile(r"\.[0-9a-f]{12}" + re.escape(PARTIAL) + r"\Z")
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EINVAL)


class PartialFolder(NamedTuple):
    path: str
    lock: int  # held while its maker, or a process that it forked, is alive


def odd_name(name: str) -> str:
    """A name that nobody else uses, and that `sweep` knows for one of ours."""
    return "{}.{}{}".format(name, uuid.uuid4().hex[:12], PARTIAL)


def begin(parent: str, name: str) -> PartialFolder:
    """A new folder of our own in `parent`; call `finish` or `abandon` with it."""
    while True:
        path = os.path.join(parent, odd_name(name))
        os.mkdir(path)
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        # A sweeper may have come between the making of the folder and its lock.
        if _lock(lock) is not False and os.path.exists(path):
            return PartialFolder(path, lock)
        os.close(lock)


def finish(partial: PartialFolder, target: str) -> bool:
    """Rename `partial` to `target`; False, and nothing left, if somebody else was quicker."""
    try:
        os.rename(partial.path, target)
    except OSError as problem:
        if problem.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        abandon(partial)
        return False
    os.close(partial.lock)
    sync_folder(os.path.dirname(target) or ".")
    return True


def abandon(partial: PartialFolder) -> None:
    remove_tree(partial.path)
    os.close(partial.lock)


def sweep(parent: str) -> None:
    """Remove what makers that are dead left in `parent`; what others call partial is theirs."""
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        if not _ODD_NAME.search(name) or os.path.islink(path) or not os.path.isdir(path):
            continue
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # its maker has just finished
            continue
        try:
            if _lock(lock):
                remove_tree(path)
        finally:
            os.close(lock)


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
