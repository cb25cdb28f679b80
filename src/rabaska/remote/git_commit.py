"""The commit of a project, and whether its files are exactly that commit's.

The project may be somebody else's: `git status` and `git diff` would start the filters that its
settings name, so files are compared here, and git only lists what it knows.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rabaska.node.record.plan import CHANGED, CLEAN
from rabaska.remote.programs import git_prints, is_there

_LARGEST = 20 * 10**6  # bytes of a file that is compared by more than its size
_LINK, _MODULE = "120000", "160000"
_RESULTS = b"results/"  # where `fetch` writes


@dataclass(frozen=True)
class Revision:
    commit: str = ""  # "" outside of git
    tree: str = ""  # CLEAN or CHANGED


def revision(folder: Path) -> Revision:
    """What git knows of `folder`; nothing where there is no git: no run depends on it."""
    if not is_there("git"):
        return Revision()
    commit = (git_prints(folder, "rev-parse", "--verify", "HEAD") or b"").decode().strip()
    listed = git_prints(folder, "ls-tree", "-r", "-z", "-l", "HEAD") if commit else None
    if not listed:  # none of it is in the commit: it may lie in a folder that git ignores
        return Revision()
    is_other = _has_new_files(folder) or _is_changed(folder, listed)
    return Revision(commit, CHANGED if is_other else CLEAN)


def _has_new_files(folder: Path) -> bool:
    listed = git_prints(folder, "ls-files", "-o", "--exclude-standard", "-z") or b""
    return any(name and not name.startswith(_RESULTS) for name in listed.split(b"\0"))


def _is_changed(folder: Path, listed: bytes) -> bool:
    filtered = _filtered(folder)
    return any(
        not _is_same(folder / os.fsdecode(name), mode, digest, size)
        for mode, digest, size, name in _entries(listed)
        if mode != _MODULE and name not in filtered
    )


def _entries(listed: bytes) -> Iterator[tuple[str, str, int, bytes]]:
    for line in listed.split(b"\0"):
        if line:
            about, _, name = line.partition(b"\t")
            mode, _, digest, size = about.decode().split()
            yield mode, digest, int(size) if size.isdigit() else 0, name


def _filtered(folder: Path) -> set[bytes]:
    """Files that a filter, such as that of git-lfs, writes otherwise than they are stored."""
    # All but those without one: `attr:filter` alone does not mean `filter=lfs`.
    without = (":(exclude,attr:!filter)", ":(exclude,attr:-filter)")
    said = git_prints(folder, "ls-files", "-z", *without)
    return set((said or b"").split(b"\0"))


def _is_same(path: Path, mode: str, digest: str, size: int) -> bool:
    try:
        if mode == _LINK:
            content = os.fsencode(path.readlink())
        elif path.stat().st_size > _LARGEST:
            return path.stat().st_size == size
        else:
            content = path.read_bytes()
    except OSError:
        return False
    # Line ends may be others in a working folder.
    return digest in (_blob(content, digest), _blob(content.replace(b"\r\n", b"\n"), digest))


def _blob(content: bytes, like: str) -> str:
    kind = hashlib.sha1 if len(like) == 40 else hashlib.sha256  # as git names what it stores
    return kind(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
