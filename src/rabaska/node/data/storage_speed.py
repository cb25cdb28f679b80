"""How fast a storage is: a small amount is written to it, read back past the cache, and removed."""

import json
import os
import time
from typing import Any, Callable, Dict, List

from .. import partial_folder
from .blocks import forget
from .free_space import disk_room
from .read_ahead import ahead

_PIECE = 2**20
_PIECES = 32
_SMALL = 4096
_SMALL_FILES = 200
_PATIENCE = 3.0  # seconds for each part, on storage that crawls

Json = Dict[str, Any]


def main(argv: List[str]) -> int:
    """`measure NAME=FOLDER …`: print what each of them can do, as one JSON object."""
    report = {}  # type: Dict[str, Json]
    for word in argv:
        name, _, folder = word.partition("=")
        report[name] = dict(_attempt(os.path.expandvars(folder)), path=folder)
    print(json.dumps(report))
    return 0


def _attempt(folder: str) -> Json:
    if "$" in folder:
        return {"why": "exists only inside a job"}
    try:
        return measured(folder)
    except OSError as problem:
        return {"why": problem.strerror or str(problem)}


def measured(folder: str) -> Json:
    """Bytes per second, seconds per small file, and what is free; OSError where we cannot write."""
    free, files = disk_room(folder)
    probe = partial_folder.begin(folder, "measuring")
    try:
        write, read = _large(os.path.join(probe.path, "large"))
        make, look = _small(probe.path)
    finally:
        partial_folder.abandon(probe)
    return {
        "free": free,
        "files": files,
        "write": write,
        "read": read,
        "seconds_to_make": make,
        "seconds_to_read": look,
    }


def _large(path: str) -> List[float]:
    """Bytes per second, written in one stream and read in several, as shards are."""
    piece, written = os.urandom(_PIECE), 0
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        begun = time.monotonic()
        while written < _PIECES and time.monotonic() - begun < _PATIENCE:
            os.pwrite(descriptor, piece, written * _PIECE)
            written += 1
        os.fsync(descriptor)
        write = _rate(written * _PIECE, begun)
        forget(descriptor, 0, 0)
        begun = time.monotonic()
        places = [number * _PIECE for number in range(written)]
        for _ in ahead(lambda place: os.pread(descriptor, _PIECE, place), places):
            pass
        return [write, _rate(written * _PIECE, begun)]
    finally:
        os.close(descriptor)


def _small(folder: str) -> List[float]:
    """Seconds to make a small file, and to open and read one."""
    paths = [os.path.join(folder, str(number)) for number in range(_SMALL_FILES)]
    content = os.urandom(_SMALL)
    written = _each(paths, lambda path: _write(path, content))
    os.sync()
    for path in paths[: written[0]]:
        descriptor = os.open(path, os.O_RDONLY)
        forget(descriptor, 0, 0)
        os.close(descriptor)
    return [written[1], _each(paths[: written[0]], _read)[1]]


def _each(paths: List[str], act: Callable[[str], None]) -> Any:
    """How many of the files there was time for, and the seconds that each took."""
    begun, done = time.monotonic(), 0
    for path in paths:
        act(path)
        done += 1
        if time.monotonic() - begun > _PATIENCE:
            break
    return done, (time.monotonic() - begun) / done


def _write(path: str, content: bytes) -> None:
    with open(path, "wb", buffering=0) as stream:
        stream.write(content)


def _read(path: str) -> None:
    with open(path, "rb", buffering=0) as stream:
        stream.read()


def _rate(size: int, begun: float) -> float:
    return size / max(time.monotonic() - begun, 1e-6)
