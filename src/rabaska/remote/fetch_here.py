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
from rabaska.remote.fetch_record import (
    PAUSE,
    ROUNDS,
    FetchRecord,
    FetchResult,
    alone_in,
    grows,
    is_left_out,
    make_folder,
    read_record,
)
from rabaska.remote.local_disk import remove
from rabaska.remote.place import Moved, SourceGone

_CHUNK = 8 << 20  # bytes


class _Unread(Exception):
    """A file of the run could not be read: not the same as one here that cannot be written."""


class _Changing(Exception):
    """Its program wrote into it while we read it."""


def copy_new(source: Path, target: Path, leave_out: Sequence[str], moved: Moved) -> FetchResult:
    with alone_in(target):
        return _copy_new(source, target, leave_out, moved)


def _copy_new(source: Path, target: Path, leave_out: Sequence[str], moved: Moved) -> FetchResult:
    record = read_record(target)
    for number in range(ROUNDS):
        record.begin_round()
        try:
            _copy_round(source, record, leave_out, moved)
        finally:
            with suppress(OSError):  # what came is here all the same
                record.write()
        if not source.is_dir():
            raise SourceGone(str(source))
        if not record.unfinished:
            break
        if number < ROUNDS - 1:
            time.sleep(PAUSE)
    return record.result()


def _copy_round(source: Path, record: FetchRecord, leave_out: Sequence[str], moved: Moved) -> None:
    listed = sorted(send_results.listing(str(source)), key=lambda entry: str(entry["path"]))
    wanted = [entry for entry in listed if not is_left_out(entry["path"], leave_out)]
    total, done = sum(entry["size"] for entry in wanted), 0
    make_folder(record.folder, record.folder)
    for entry in wanted:
        path, link = entry["path"], entry["link"]
        if entry.get("problem"):
            record.unread[path] = entry["problem"]
        elif not record.refuses(path, link) and record.wants(
            path, entry["size"], entry["mtime_ns"]
        ):
            _take(source, entry, record)
        done += entry["size"]
        moved(done, total)


def _take(source: Path, entry: dict[str, Any], record: FetchRecord) -> None:
    path = entry["path"]
    goal = record.folder / path
    make_folder(goal.parent, record.folder)
    partial = Path(files.partial_name(str(goal)))
    try:
        if entry["link"] is None:
            size, mtime_ns = _copy(source / path, partial)
        else:
            size, mtime_ns = entry["size"], entry["mtime_ns"]
            partial.symlink_to(entry["link"])
            os.utime(partial, ns=(mtime_ns, mtime_ns), follow_symlinks=False)
        record.make_way(path)
        partial.replace(goal)
        record.note(path, size, mtime_ns)
    except FileNotFoundError as problem:
        remove(partial)
        if problem.filename != str(source / path):  # else it was removed there meanwhile
            raise
    except _Unread as problem:
        remove(partial)
        record.unread[path] = str(problem)
    except _Changing:
        remove(partial)
        record.unfinished[path] = None
    except OSError:
        remove(partial)
        raise


def _copy(source: Path, target: Path) -> tuple[int, int]:
    """Copy a file as it is now, make sure of it, and say its size and time."""
    with _reading():
        stream = source.open("rb")
    with stream, files.create(str(target)) as writing:
        status = os.fstat(stream.fileno())
        left = status.st_size
        while left > 0:
            with _reading():
                piece = stream.read(min(_CHUNK, left))
            if not piece:
                raise _Changing
            writing.write(piece)
            left -= len(piece)
        if send_results.changed(status, os.fstat(stream.fileno())) and not grows(source.name):
            raise _Changing
        writing.flush()
        os.fchmod(writing.fileno(), stat.S_IMODE(status.st_mode))
        os.utime(writing.fileno(), ns=(status.st_mtime_ns, status.st_mtime_ns))
        os.fsync(writing.fileno())
    return status.st_size, status.st_mtime_ns


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise _Unread(problem.strerror or str(problem)) from problem
