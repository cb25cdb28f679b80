"""What is in a folder, in a stable order: every file, link and folder below it."""

import errno
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from rabaska.errors import DatasetError
from rabaska.node.inspection import leads_out
from rabaska.node.packs import FILE, FOLDER, LINK

PERMISSIONS = 0o777  # set-user-id and its kin mean nothing to a training program


class Found(NamedTuple):
    """One entry, as it was when it was listed."""

    name: bytes  # relative to the folder that is listed
    kind: int
    size: int
    mtime_ns: int
    mode: int
    inode: int
    ctime_ns: int
    target: bytes


def listing(source: bytes, *, follow_links: bool = False) -> Iterator[Found]:
    """Everything below `source`; files come in the order of the bytes of their names.

    A folder comes before what is in it.
    """
    identity = os.stat(source)
    above = [(identity.st_dev, identity.st_ino)]
    levels = [iter(_sorted_entries(source))]
    while levels:
        entry = next(levels[-1], None)
        if entry is None:
            levels.pop()
            above.pop()
            continue
        found, status = _found(source, entry, follow_links)
        yield found
        if found.kind == FOLDER:
            here = (status.st_dev, status.st_ino)
            _refuse_loop(found.name, here, above)
            above.append(here)
            levels.append(iter(_sorted_entries(entry.path)))


def _sorted_entries(folder: bytes) -> list[os.DirEntry[bytes]]:
    """The entries of `folder` such that a walk meets whole names in the order of their bytes."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=_place)
    except OSError as problem:
        raise _unreadable(folder, problem) from problem


def _place(entry: os.DirEntry[bytes]) -> bytes:
    # What is in a folder is named `folder/…`, so that is where the folder belongs.
    try:
        return entry.name + b"/" if entry.is_dir() else entry.name
    except OSError:  # a link in a circle; what it is will be found out later
        return entry.name


def _found(
    source: bytes, entry: os.DirEntry[bytes], follow_links: bool
) -> tuple[Found, os.stat_result]:
    name = entry.path[len(source) + 1 :]
    try:
        status = entry.stat(follow_symlinks=follow_links)
        target = os.readlink(entry.path) if stat.S_ISLNK(status.st_mode) else b""
    except OSError as problem:
        raise _unreadable(entry.path, problem) from problem
    kind = _kind(entry.path, status.st_mode)
    if kind == LINK:
        _refuse_leaving(source, entry.path, name, target)
    found = Found(
        name, kind, status.st_size if kind == FILE else 0, status.st_mtime_ns,
        status.st_mode & PERMISSIONS, status.st_ino, status.st_ctime_ns, target,
    )  # fmt: skip
    return found, status


def _kind(path: bytes, mode: int) -> int:
    if stat.S_ISREG(mode):
        return FILE
    if stat.S_ISDIR(mode):
        return FOLDER
    if stat.S_ISLNK(mode):
        return LINK
    what = {stat.S_IFSOCK: "a socket", stat.S_IFIFO: "a named pipe"}.get(stat.S_IFMT(mode))
    raise DatasetError(
        f"{os.fsdecode(path)} cannot be packed",
        why=f"it is {what or 'a device'}, not a file",
        hint="remove it from the dataset's folder",
    )


def _refuse_leaving(source: bytes, path: bytes, name: bytes, target: bytes) -> None:
    try:
        os.stat(path)
    except FileNotFoundError:
        pass  # it leads nowhere here, and will lead nowhere there
    except OSError as problem:
        raise _unreadable(path, problem) from problem
    if not leads_out(name, target):
        return
    raise DatasetError(
        f"{os.fsdecode(path)} is a link that leads out of the dataset",
        why=f"it points to {os.fsdecode(target)}, which does not travel with {os.fsdecode(source)}",
        hint="set `follow_links = true` for this dataset to pack what the link points to",
    )


def _refuse_loop(name: bytes, here: tuple[int, int], above: list[tuple[int, int]]) -> None:
    if here not in above:
        return
    raise DatasetError(
        f"{os.fsdecode(name)} is a link to a folder that holds it",
        why="following it would never end",
        hint="remove the link, or set `follow_links = false` for this dataset",
    )


def _unreadable(path: bytes, problem: OSError) -> DatasetError:
    return unreadable(os.fsdecode(path), problem)


def unreadable(path: str, problem: OSError) -> DatasetError:
    """The error for a file or folder of a dataset that cannot be read."""
    if isinstance(problem, FileNotFoundError):
        return DatasetError(
            f"{path} vanished while the dataset was packed",
            why="it was listed a moment ago, or is a link to nothing",
            hint="run the command again when no program changes the folder",
        )
    if problem.errno == errno.ELOOP:
        return DatasetError(
            f"{path} is a link that leads back to itself",
            why=problem.strerror or str(problem),
            hint="remove the link",
        )
    return DatasetError(
        f"{path} cannot be read",
        why=problem.strerror or str(problem),
        hint="make it readable with `chmod u+r`, or remove it from the dataset's folder",
    )
