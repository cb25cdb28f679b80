"""Locks that the kernel drops when their holder dies, however it dies."""

import fcntl
import os
from contextlib import contextmanager
from typing import Iterator, Optional


def hold(path: str, wait: bool = True) -> Optional[int]:
    """Lock `path` and return what holds it; None when another does and we do not wait.

    A lock belongs to the open file, so it outlives this process in a forked child that keeps it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_held(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two who look at the same moment do not take each other for the holder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def held(path: str, wait: bool = True) -> Iterator[bool]:
    """Whether `path` is locked by us inside the `with`; always True when waiting."""
    descriptor = hold(path, wait)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)
