"""Files that survive a kill: a reader finds all of a file or none of it."""

import errno
import json
import os
from typing import Any, Dict, Iterator, Optional, Union

PARTIAL = ".partial"

Json = Dict[str, Any]


def native(name: str) -> str:
    """A name that came as JSON, as this Python spells it.

    Python 3.6 where the locale is C could otherwise not open what has an accent.
    """
    return os.fsdecode(name.encode("utf-8", "surrogateescape"))


def is_still_there(path: str) -> bool:
    """Whether there is such a thing; if so, it counts as new: `clean` takes only what is old."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True  # somebody else's, who cleans it
    return True


def sync_folder(path: str) -> None:
    """Make renames and new names inside `path` durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        # Some network file systems refuse to sync a folder; their renames are synchronous.
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


def sync_file(path: str) -> None:
    """Make what was written to `path` durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: str, content: Union[str, bytes]) -> None:
    """Write `content` to `path` so that it is there whole, durably, or not at all."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    partial = "{}.{}{}".format(path, os.getpid(), PARTIAL)
    try:
        with open(partial, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except BaseException:
        remove_if_there(partial)
        raise
    sync_folder(os.path.dirname(path) or ".")


def write_json(path: str, value: Json) -> None:
    write_whole(path, json.dumps(value, indent=1, sort_keys=True) + "\n")


def read_json(path: str) -> Optional[Json]:
    """The object in `path`, or None when there is no such file."""
    try:
        with open(path, encoding="utf-8") as stream:
            value = json.load(stream)
    except OSError as problem:
        if problem.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise
    return value if isinstance(value, dict) else None


def append_line(path: str, value: Json) -> None:
    """Append `value` as one JSON line, durably, healing the half line a killed writer left."""
    line = (json.dumps(value, sort_keys=True) + "\n").encode("utf-8")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        end = os.lseek(descriptor, 0, os.SEEK_END)
        if end and os.pread(descriptor, 1, end - 1) != b"\n":
            line = b"\n" + line
        os.write(descriptor, line)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_lines(path: str) -> Iterator[Json]:
    """Every whole JSON line of `path`; what a killed writer left half written is passed over."""
    try:
        stream = open(path, "rb")
    except FileNotFoundError:
        return
    with stream:
        for line in stream:
            try:
                value = json.loads(line.decode("utf-8"))
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def remove_if_there(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
