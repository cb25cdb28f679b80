"""Checkpoints that are folders: whole and proven, or not there at all.

A folder `ckpt-000000123` is made beside its place under another name. Its files are written and
synced, then COMMIT.json, which names each of them with its size and checksums; last comes the
rename. There is no file that points to the newest one: whoever wants it looks at what is there.
"""

import errno
import os
import re
import zlib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from .. import files, partial_folder

COMMIT = "COMMIT.json"
FORMAT = 1
# Checksums are of pieces, so that writing and checking can share the work among threads.
PIECE = 8 << 20  # bytes
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)

_NAME = re.compile(r"ckpt-(\d{9,})\Z")
DAMAGED = ".damaged"


class CheckpointPart(NamedTuple):
    """One file of a checkpoint."""

    name: str  # relative to the folder, with slashes
    size: int  # bytes
    sums: List[int]  # CRC-32 of each piece


class Made(NamedTuple):
    step: int
    path: str


def folder_name(step: int) -> str:
    return "ckpt-{:09d}".format(step)


def step_of(name: str) -> Optional[int]:
    """The step of a folder that is called like a finished checkpoint, else None."""
    found = _NAME.match(name)
    return int(found.group(1)) if found else None


def newest_first(parent: str) -> List[Made]:
    """Every finished folder of `parent`, whole or not."""
    found = []
    for name in _names(parent):
        step = step_of(name)
        if step is not None:
            found.append(Made(step, os.path.join(parent, name)))
    return sorted(found, reverse=True)


def _names(parent: str) -> List[str]:
    try:
        return os.listdir(parent)
    except FileNotFoundError:
        return []


def sums_of(view: memoryview) -> List[int]:
    return [zlib.crc32(view[place : place + PIECE]) for place in range(0, len(view), PIECE)]


def proven(folder: str, name: str) -> CheckpointPart:
    """The part that a file, just written by somebody else, is; it is read and synced."""
    path = os.path.join(folder, name)
    with open(path, "rb") as stream:
        sums = [zlib.crc32(piece) for piece in _pieces(stream)]
        os.fsync(stream.fileno())
        return CheckpointPart(name, os.fstat(stream.fileno()).st_size, sums)


def _pieces(stream: Any) -> Iterator[bytes]:
    piece = stream.read(PIECE)
    while piece:
        yield piece
        piece = stream.read(PIECE)


def seal(folder: str, step: int, parts: List[CheckpointPart], about: Dict[str, Any]) -> None:
    """Write COMMIT.json, after which the folder may get its name."""
    manifest = {"format": FORMAT, "step": step, "piece": PIECE, "about": about}
    manifest["files"] = [dict(part._asdict()) for part in parts]
    files.write_json(os.path.join(folder, COMMIT), manifest)
    for above in {os.path.dirname(part.name) for part in parts}:
        files.sync_folder(os.path.join(folder, above) if above else folder)


def manifest_of(folder: str) -> Optional[Dict[str, Any]]:
    """COMMIT.json, or None when there is none or it is damaged."""
    try:
        manifest = files.read_json(os.path.join(folder, COMMIT))
    except ValueError:
        return None
    if manifest is None or manifest.get("format") != FORMAT:
        return None
    return manifest


def parts_of(manifest: Dict[str, Any]) -> List[CheckpointPart]:
    return [
        CheckpointPart(str(p["name"]), int(p["size"]), list(p["sums"])) for p in manifest["files"]
    ]


def check(folder: str, deep: bool = False) -> Optional[str]:
    """None when the checkpoint is whole, else why it is not; `deep` reads all of it."""
    manifest = manifest_of(folder)
    if manifest is None:
        return "it has no readable {}".format(COMMIT)
    try:
        parts = parts_of(manifest)
        if manifest["step"] != step_of(os.path.basename(folder)):
            return "{} is of another step".format(COMMIT)
        piece = int(manifest["piece"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return "{} is damaged".format(COMMIT)
    for part in parts:
        why = _check_part(os.path.join(folder, part.name), part, piece if deep else 0)
        if why is not None:
            return why
    return None


def _check_part(path: str, part: CheckpointPart, piece: int) -> Optional[str]:
    try:
        stream = open(path, "rb")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return "{} is missing".format(part.name)
    with stream:
        size = os.fstat(stream.fileno()).st_size
        if size != part.size:
            return "{} has {} bytes instead of {}".format(part.name, size, part.size)
        if piece:
            sums = [zlib.crc32(content) for content in iter(lambda: stream.read(piece), b"")]
            if sums != part.sums:
                return "{} has changed since it was written".format(part.name)
    return None


def size_of(folder: str) -> int:
    """Bytes that the manifest tells of; 0 when there is none."""
    manifest = manifest_of(folder)
    try:
        return sum(part.size for part in parts_of(manifest or {"files": []}))
    except (KeyError, TypeError, ValueError):
        return 0


def set_aside(path: str) -> str:
    """Rename something damaged, over nothing else, so that it is met only once: its new name."""
    free, number = path + DAMAGED, 1
    while os.path.lexists(free):
        number += 1
        free = "{}.{}{}".format(path, number, DAMAGED)
    os.rename(path, free)
    return free


def prune(parent: str, keep: int) -> None:
    """Delete all but the newest `keep` whole checkpoints, and older ones that are not whole.

    Those that are kept are proven first, sizes only: they were proven when they were written.
    """
    kept = 0
    for made in newest_first(parent):
        if kept >= keep:
            remove(made.path)
        elif check(made.path) is None:
            kept += 1


def remove(path: str) -> None:
    """Take the name away first: half a deleted checkpoint must not look like one."""
    doomed = os.path.join(
        os.path.dirname(path), partial_folder.temporary_name(os.path.basename(path))
    )
    try:
        os.rename(path, doomed)
    except FileNotFoundError:
        return
    partial_folder.remove_tree(doomed)
