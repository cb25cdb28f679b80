"""The far end of a fetch: what a folder holds, and the bytes that are wanted of it.

`send-results list FOLDER` prints one JSON line for each file. `send-results give FOLDER` reads a
JSON list of [path, size, mtime_ns, offset] and answers each with a line, bytes, and another line:

    {"size": …, "mtime_ns": …, "offset": …}  the file as it is now, size -1 when it is gone, or
                                             cannot be read, and then with "problem";
                                             offset 0 when it is not the file that was meant
    <size - offset bytes>
    {"sha256": …, "changed": …, "problem": …}  of the whole file; empty if it shrank meanwhile or
                                             could not be read; whether it changed meanwhile

What cannot be read has a "problem" in the list, too.
"""

import errno
import hashlib
import json
import os
import stat
import sys
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Tuple

from ..files import native

GONE = 77  # the exit code when the folder itself is not there (any more)
_CHUNK = 1 << 20

Json = Dict[str, Any]


def main(words: List[str]) -> int:
    act, folder = words
    if not os.path.isdir(folder):
        return GONE
    if act == "list":
        for entry in listing(folder):
            print(json.dumps(entry))
    else:
        for path, size, mtime_ns, offset in json.loads(sys.stdin.readline()):
            _give(folder, path, (size, mtime_ns), offset)
    # A job that took the run over while we read has renamed the folder: what we said is
    # incomplete, and the other side must ask again for where it is now.
    return 0 if os.path.isdir(folder) else GONE


def listing(folder: str) -> Iterator[Json]:
    """Every file and symbolic link below `folder`; folders are made as files need them."""
    unread = []  # type: List[OSError]
    for parent, folders, names in os.walk(folder, onerror=unread.append):
        linked = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in sorted(names + linked):
            path = os.path.join(parent, name)
            entry = _entry(path, os.path.relpath(path, folder))
            if entry:
                yield entry
    for problem in unread:
        if not is_gone(problem):
            yield _unread(os.path.relpath(str(problem.filename), folder) + "/", problem)


def is_gone(problem: OSError) -> bool:
    """Whether it was removed meanwhile, as programs do; anything else must be said."""
    return problem.errno in (errno.ENOENT, errno.ENOTDIR)


def changed(before: os.stat_result, after: os.stat_result) -> bool:
    """Whether somebody wrote into an open file between two looks at it."""
    return (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)


def _entry(path: str, name: str) -> Optional[Json]:
    try:
        found = os.lstat(path)
        link = os.readlink(path) if stat.S_ISLNK(found.st_mode) else None
    except OSError as problem:
        return None if is_gone(problem) else _unread(name, problem)
    if link is None and not stat.S_ISREG(found.st_mode):
        return None  # sockets and pipes are nothing to bring home
    return {"path": name, "size": found.st_size, "mtime_ns": found.st_mtime_ns, "link": link}


def _unread(name: str, problem: OSError) -> Json:
    return {"path": name, "size": 0, "mtime_ns": 0, "link": None, "problem": _reason(problem)}


def _reason(problem: OSError) -> str:
    return problem.strerror or str(problem)


def _give(folder: str, path: str, known: Tuple[int, int], offset: int) -> None:
    try:
        stream = open(os.path.join(folder, native(path)), "rb")
    except OSError as problem:
        why = "" if is_gone(problem) else _reason(problem)
        _send_json({"size": -1, "mtime_ns": 0, "offset": 0, "problem": why})
        return
    with stream:
        found = os.fstat(stream.fileno())
        if (found.st_size, found.st_mtime_ns) != known:
            offset = 0
        _send_json({"size": found.st_size, "mtime_ns": found.st_mtime_ns, "offset": offset})
        digest, why = _send(stream, offset, found.st_size)
        is_other = changed(found, os.fstat(stream.fileno()))
        _send_json({"sha256": digest, "changed": is_other, "problem": why})


def _send(stream: BinaryIO, offset: int, size: int) -> Tuple[str, str]:
    """Send what follows `offset`; the digest of the whole file, "" if it shrank or could not be
    read, and why not."""
    digest, done, why = hashlib.sha256(), 0, ""
    while done < size:
        end = offset if done < offset else size
        try:
            piece = stream.read(min(_CHUNK, end - done))
        except OSError as problem:
            piece, why = b"", _reason(problem)
        if not piece:
            _fill(size - max(done, offset))
            return "", why
        digest.update(piece)
        if done >= offset:
            sys.stdout.buffer.write(piece)
        done += len(piece)
    return digest.hexdigest(), ""


def _fill(length: int) -> None:
    """What was promised is sent, though the file shrank: the reader counts bytes."""
    while length > 0:
        step = min(length, _CHUNK)
        sys.stdout.buffer.write(bytes(step))
        length -= step


def _send_json(value: Json) -> None:
    sys.stdout.buffer.write(json.dumps(value).encode("ascii") + b"\n")
    sys.stdout.buffer.flush()
