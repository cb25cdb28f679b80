"""A fetch on this computer: copies of what is new, of programs that may be writing it."""

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rabaska.node import files
from rabaska.node.login import send_results
from rabaska.remote.fetched_before import (
    PAUSE,
    ROUNDS,
    Before,
    Brought,
    before,
    grows,
    is_left_out,
    make_folder,
)
from rabaska.remote.local_disk import remove
from rabaska.remote.place import Moved, SourceGone

_CHUNK = 8 << 20  # bytes


class _Unread(Exception):
    """A file of the run could not be read: not the same as one here that cannot be written."""


class _Changing(Exception):
    """Its program wrote into it while we read it."""


def copy_new(source: Path, target: Path, leave_out: Sequence[str], moved: Moved) -> Brought:
    here = before(target)
    for number in range(ROUNDS):
        here.begin_round()
        try:
            _copy_round(source, here, leave_out, moved)
        finally:
            with suppress(OSError):  # what came is here all the same
                here.write()
        if not source.is_dir():
            raise SourceGone(str(source))
        if not here.unfinished:
            break
        if number < ROUNDS - 1:
            time.sleep(PAUSE)
    return here.told()


def _copy_round(source: Path, here: Before, leave_out: Sequence[str], moved: Moved) -> None:
    listed = sorted(send_results.listing(str(source)), key=lambda entry: str(entry["path"]))
    wanted = [entry for entry in listed if not is_left_out(entry["path"], leave_out)]
    total, done = sum(entry["size"] for entry in wanted), 0
    make_folder(here.folder, here.folder)
    for entry in wanted:
        path, link = entry["path"], entry["link"]
        if entry.get("problem"):
            here.unread[path] = entry["problem"]
        elif not here.refuses(path, link) and here.wants(path, entry["size"], entry["mtime_ns"]):
            _take(source, entry, here)
        done += entry["size"]
        moved(done, total)


def _take(source: Path, entry: dict[str, Any], here: Before) -> None:
    path = entry["path"]
    goal = here.folder / path
    make_folder(goal.parent, here.folder)
    partial = goal.with_name(f"{goal.name}.{os.getpid()}{files.PARTIAL}")
    try:
        if entry["link"] is None:
            size, mtime_ns = _copy(source / path, partial)
        else:
            size, mtime_ns = entry["size"], entry["mtime_ns"]
            partial.symlink_to(entry["link"])
            os.utime(partial, ns=(mtime_ns, mtime_ns), follow_symlinks=False)
        here.make_way(path)
        partial.replace(goal)
        here.note(path, size, mtime_ns)
    except FileNotFoundError as problem:
        remove(partial)
        if problem.filename != str(source / path):  # else it was removed there meanwhile
            raise
    except _Unread as problem:
        remove(partial)
        here.unread[path] = str(problem)
    except _Changing:
        remove(partial)
        here.unfinished[path] = None
    except OSError:
        remove(partial)
        raise


def _copy(source: Path, target: Path) -> tuple[int, int]:
    """Copy a file as it is now, make sure of it, and say its size and time."""
    with _reading():
        stream = source.open("rb")
    with stream, files.create(str(target)) as writing:
        found = os.fstat(stream.fileno())
        left = found.st_size
        while left > 0:
            with _reading():
                piece = stream.read(min(_CHUNK, left))
            if not piece:
                raise _Changing
            writing.write(piece)
            left -= len(piece)
        if send_results.changed(found, os.fstat(stream.fileno())) and not grows(source.name):
            raise _Changing
        writing.flush()
        os.fchmod(writing.fileno(), stat.S_IMODE(found.st_mode))
        os.utime(writing.fileno(), ns=(found.st_mtime_ns, found.st_mtime_ns))
        os.fsync(writing.fileno())
    return found.st_size, found.st_mtime_ns


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise _Unread(problem.strerror or str(problem)) from problem
