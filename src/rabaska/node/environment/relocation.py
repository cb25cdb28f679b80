"""Environments that can be moved: which files hold the path they were made under, and new ones.

Packages of conda hold it in text and, in programs, as text that ends with a zero byte. An
environment is made under a long path, so that the path on any node fits into its place.
`relocate FOLDER` writes the path of FOLDER into the files that `packed` listed.
"""

import json
import mmap
import os
import re
import shutil
import sys
import tarfile
from typing import Callable, Dict, Iterator, List

from .. import files
from .pack_environment import below

LIST = ".rabaska-prefix.json"

_LENGTH = 220  # of the path it is made under; node-local folders are shorter
_FILLING = "_placehold"


class TooLong(Exception):
    """The new path does not fit into the place of the old one."""


def main(argv: List[str]) -> int:
    if len(argv) != 1:
        sys.stderr.write("usage: relocate FOLDER\n")
        return 2
    try:
        relocate(os.path.abspath(argv[0]))
    except (OSError, TooLong, ValueError, KeyError) as problem:
        sys.stderr.write("the environment cannot be moved: {}\n".format(problem))
        return 1
    return 0


def long_path(parent: str) -> str:
    """A folder below `parent` whose path leaves room for others."""
    missing = max(len(_FILLING), _LENGTH - len(os.fsencode(parent)) - 1)
    return os.path.join(parent, (_FILLING * (missing // len(_FILLING) + 1))[:missing])


def pack(folder: str, archive: str) -> int:
    """`folder` as a tar with the list of its files that hold its path; how many files it has."""
    mentions: Dict[str, List[str]] = {"text": [], "binary": []}
    count = 0
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in below(folder):
            name = os.path.relpath(path, folder)
            entry = tar.gettarinfo(path, name)
            count += 1
            if entry.issym() and entry.linkname.startswith(folder + "/"):
                entry.linkname = os.path.relpath(entry.linkname, os.path.dirname(path))
            # Of hard links each is listed: a file that is written anew is no longer the other one.
            kind = mention(path, os.fsencode(folder)) if entry.isreg() or entry.islnk() else ""
            if kind:
                mentions[kind].append(name)
            if not entry.isreg():
                tar.addfile(entry)
                continue
            with open(path, "rb") as stream:
                tar.addfile(entry, stream)
        own = os.path.join(os.path.dirname(folder), LIST)
        files.write_json(own, dict(mentions, prefix=folder))
        tar.add(own, LIST)
    return count


def mention(path: str, prefix: bytes) -> str:
    """How a file holds the path: `text`, `binary`, or "" where it does not."""
    if os.path.getsize(path) < len(prefix) or path.endswith(".pyc"):
        return ""
    with open(path, "rb") as stream:
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content.find(prefix) < 0:
                return ""
            return "binary" if content.find(b"\0") >= 0 else "text"


def relocate(folder: str) -> None:
    with open(os.path.join(folder, LIST), encoding="utf-8") as stream:
        listed = json.load(stream)
    old, new = os.fsencode(listed["prefix"]), os.fsencode(folder)
    if len(new) > len(old) and listed["binary"]:
        raise TooLong("{} is longer than {} characters".format(folder, len(old)))
    for name in _inside(folder, listed["text"]):
        _rewrite(name, lambda content: content.replace(old, new))
    for name in _inside(folder, listed["binary"]):
        _rewrite(name, lambda content: with_path(content, old, new))


def _inside(folder: str, names: List[str]) -> Iterator[str]:
    for name in names:
        if os.path.isabs(name) or ".." in name.split("/"):
            raise ValueError("{} is outside".format(name))
        yield os.path.join(folder, name)


def with_path(content: bytes, old: bytes, new: bytes) -> bytes:
    """The same number of bytes: each piece of text keeps its end, and zeros fill it up."""

    def moved(found: "re.Match[bytes]") -> bytes:
        text = found.group(0).replace(old, new)
        return text + b"\0" * (len(found.group(0)) - len(text))

    return re.sub(re.escape(old) + rb"[^\0]*(?=\0)", moved, content)


def _rewrite(path: str, change: Callable[[bytes], bytes]) -> None:
    with open(path, "rb") as stream:
        content = stream.read()
    partial = files.partial_name(path)
    with open(partial, "wb") as stream:
        stream.write(change(content))
    shutil.copymode(path, partial)
    os.replace(partial, path)
