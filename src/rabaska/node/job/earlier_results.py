"""What earlier jobs left in the code folder, shown there again for the next one."""

import errno
import os
import shutil
from typing import List

from ..checkpoints.commit import NO_SPACE
from ..record.events import say
from .copied_files import Copies
from .copy_files import copy_whole
from .unpacked_code import listing


def show(code: str, carried: str, keep: List[str]) -> None:
    """Make `keep`, and what earlier jobs left beside the code, appear beside it as links.

    Checkpoints appear as copies: a program that saves in place, and is killed while it does, must
    not tear the only one there is.
    """
    output = os.path.join(carried, "output")
    known = Copies(code, carried)
    for path in keep:
        _show_one(code, path, os.path.join(output, path))
    for path in known.paths():
        there = os.path.join(output, known.place_of(path))
        if not os.path.lexists(there) or _covered(code, path):
            continue
        if not known.is_save(path) or not _show_copy(code, path, there):
            _show_one(code, path, there)
    known.shown(keep)


def _show_copy(code: str, path: str, there: str) -> bool:
    """Put a copy beside the code; False, and it is said, when the node's disk has no room."""
    here = os.path.join(code, path)
    os.makedirs(os.path.dirname(here), exist_ok=True)
    try:
        # Twice: the program needs as much again, to write the next one.
        if _room_in(os.path.dirname(here)) < 2 * os.lstat(there).st_size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        copy_whole(there, here)
    except OSError as problem:
        if problem.errno not in NO_SPACE:
            raise
        told = "{} in the code folder is the only copy: the node's disk has no room for another; "
        told += "write to a temporary name first, then rename it"
        say(told.format(path))
        return False
    return True


def _room_in(folder: str) -> int:
    return shutil.disk_usage(folder).free


def _show_one(code: str, path: str, there: str) -> None:
    here = os.path.join(code, path)
    if _covered(code, path):
        return
    if os.path.isdir(here):
        _merge(here, there)
        shutil.rmtree(here)
    elif os.path.lexists(here):
        if not os.path.lexists(there):
            copy_whole(here, there)
        os.unlink(here)
    elif not os.path.lexists(there):
        # Nothing says yet what it will be; a name without a suffix is taken for a folder.
        is_file = "." in os.path.basename(path).lstrip(".") and not path.endswith("/")
        os.makedirs(os.path.dirname(there) if is_file else there, exist_ok=True)
    here = here.rstrip("/")
    os.makedirs(os.path.dirname(here), exist_ok=True)
    os.symlink(there.rstrip("/"), here)


def _covered(code: str, path: str) -> bool:
    """Whether `path`, or a folder above it, is shown already."""
    parts = path.strip("/").split("/")
    above = [os.path.join(code, *parts[:depth]) for depth in range(1, len(parts) + 1)]
    return any(os.path.islink(one) for one in above)


def _merge(source: str, target: str) -> None:
    os.makedirs(target, exist_ok=True)
    for path in listing(source):
        there = os.path.join(target, path)
        if not os.path.lexists(there) and os.path.isfile(os.path.join(source, path)):
            os.makedirs(os.path.dirname(there), exist_ok=True)
            copy_whole(os.path.join(source, path), there)


def paths(carried: str) -> List[str]:
    """The paths in the code folder that earlier jobs left."""
    return Copies("", carried).paths()
