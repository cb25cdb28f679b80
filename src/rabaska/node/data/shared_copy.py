"""One copy of a pack's shards for all runs of a user on a node.

<root>/rabaska-<uid>/<pack>.arriving   the folder that they read, see arrive.py
<root>/rabaska-<uid>/<pack>.lock       held by every process that reads it

A lock ends with its holder, however that ends. Who holds it alone may remove the folder, which is
renamed first: nobody ever finds half of one.
"""

import fcntl
import os
import time
from typing import NamedTuple, Optional

from .. import partial_folder, private_files
from . import background_copy, pack_proof
from .free_space import disk_room

_KEPT = 3 * 24 * 3600  # seconds that a copy is kept though nobody reads it
_LOCK = ".lock"


class Use(NamedTuple):
    """A copy that may be read until `leave`, or until this process ends."""

    folder: str
    lock: int
    path: str  # of the lock


def begin(pack_folder: str, root: str, size: int) -> Optional[Use]:
    """Use the copy below `root`, or make one; None where nothing can be shared."""
    home = _home(root)
    if home is None:
        return None
    path = os.path.join(home, os.path.basename(os.path.abspath(pack_folder)) + _LOCK)
    try:
        lock = _held(path)
    except OSError:  # a file system without locks
        return None
    os.utime(path)
    if pack_proof.damage(_copy(path)) is not None:
        os.close(lock)
        _evict_one(path)  # unless somebody still reads it, who will find out too
        return None
    if not os.path.isdir(_copy(path)):
        evict(home, size)
    return Use(background_copy.begin(pack_folder, home), lock, path)


def leave(use: Use, *, keep: bool) -> None:
    """End the use; the copy goes with its last reader, unless it is kept for the next."""
    if not keep or pack_proof.damage(use.folder) is not None:
        _remove_unread(use.path, use.lock)
    os.close(use.lock)


def evict(home: str, needed: int = 0) -> None:
    """Remove copies that nobody reads: those of long ago, and for want of room the oldest."""
    partial_folder.sweep(home)
    locks = [os.path.join(home, name) for name in os.listdir(home) if name.endswith(_LOCK)]
    for touched, path in sorted((_touched(path), path) for path in locks):
        if time.time() - touched > _KEPT or disk_room(home)[0] < needed:
            _evict_one(path)


def _touched(path: str) -> float:
    """When it was last used; now, if another removed it meanwhile."""
    try:
        return os.stat(path).st_mtime
    except FileNotFoundError:
        return time.time()


def _evict_one(path: str) -> None:
    try:
        lock = os.open(path, os.O_RDWR)
    except FileNotFoundError:  # another was quicker
        return
    _remove_unread(path, lock)
    os.close(lock)


def own_folder(root: str, name: str) -> Optional[partial_folder.PartialFolder]:
    """A new folder below `root` that nobody shares; it is swept when its maker is dead."""
    home = _home(root)
    if home is None:
        return None
    evict(home)
    return partial_folder.begin(home, name)


def _home(root: str) -> Optional[str]:
    """Our own folder in a place where others may make folders too."""
    home = os.path.join(root, "rabaska-{}".format(os.getuid()))
    why = private_files.claim(home)
    if why:
        print("rabaska: {} is not used: {}".format(home, why), flush=True)
    return None if why else home


def _copy(lock_path: str) -> str:
    return lock_path[: -len(_LOCK)] + background_copy.ENDING


def _held(path: str) -> int:
    """The lock, shared with other readers."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
        except OSError:
            os.close(lock)
            raise
        if _is_still(path, lock):
            return lock
        os.close(lock)  # it was removed together with its copy while we waited


def _is_still(path: str, lock: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(lock))
    except FileNotFoundError:
        return False


def _remove_unread(path: str, lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody reads it
        return
    if not _is_still(path, lock):
        return
    going = os.path.join(os.path.dirname(path), partial_folder.temporary_name("going"))
    try:
        os.rename(_copy(path), going)
    except FileNotFoundError:
        pass
    os.unlink(path)
    partial_folder.remove_tree(going)
