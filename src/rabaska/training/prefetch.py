"""Shards read ahead, whole and in order, before anybody asks: random reads from a cold disk crawl.

The system is only asked; what it has read already costs nothing to ask for again, so every worker
may do so.
"""

import os
import threading
from typing import List

from rabaska.node.data.free_space import free_memory

_PIECE = 8 * 2**20
_SHARE = 0.5  # of the memory that is free


def warm(paths: List[str]) -> bool:
    """Begin to read these files into the system's cache, unless they would not fit; whether so."""
    if not hasattr(os, "posix_fadvise"):
        return False
    try:
        sizes = [os.path.getsize(path) for path in paths]
    except OSError:  # some have not arrived yet, and arriving warms them
        return False
    if sum(sizes) > _SHARE * free_memory():
        return False
    threading.Thread(target=_read_ahead, args=(paths, sizes), daemon=True).start()
    return True


def _read_ahead(paths: List[str], sizes: List[int]) -> None:
    for path, size in zip(paths, sizes):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # the job is ending and its data is being removed
            return
        try:
            for offset in range(0, size, _PIECE):
                os.posix_fadvise(descriptor, offset, _PIECE, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(descriptor)
