"""What is in a folder, in a stable order: every file by name alone, every link and folder in full.

Files are not asked for their size or time here. That costs as much as reading a small one, and
who reads it has it open anyway.
"""

import errno
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from rabaska.errors import DatasetError
from rabaska.node.data.pack_format import FOLDER, LINK
from rabaska.node.data.pack_safety import leads_out
from rabaska.node.data.pack_tail import ListedFolder
from rabaska.node.data.read_ahead import ahead
from rabaska.packing.compiled import CompiledNotPlain, leaf, walk
from rabaska.packing.name_columns import Names, names_of
from rabaska.packing.refusals import refuse_secrets


class NotPlain(Exception):
    """What is listed has to be looked at one by one."""


_FEW, _FEW_NAMES = 4, 2000  # folders that one thread looks into at a time, and their files

_Entry = os.DirEntry[bytes]


class Listing:
    """One walk over `source`: iterate it for the names of files, then ask for links and folders."""

    def __init__(self, source: bytes, *, follow_links: bool = False) -> None:
        self.links: list[ListedFolder] = []
        self.folders: list[ListedFolder] = []
        self._source = source
        self._follow = follow_links
        self._looks_ahead = False  # in one folder at a time, or there might be too many threads

    def walked(self) -> Iterator[Names]:
        """The same as iterating, by C; NotPlain, at any time, where that cannot be."""
        if self._follow or walk is None:
            raise NotPlain
        try:
            for *names, folders in walk(self._source):
                self.folders += [ListedFolder(name, FOLDER, b"") for name in folders]
                yield Names(*names)
        except CompiledNotPlain as problem:
            self.folders.clear()
            raise NotPlain from problem

    def __iter__(self) -> Iterator[Names]:
        """Names of files, many at a time; all of them in the order of their bytes."""
        root = self._scan_folder(b"")
        above = [_identity(root.status)]
        levels = [self._items(root)]
        while levels:
            item = next(levels[-1], None)
            if isinstance(item, Names):
                yield item
            elif item is None:
                levels.pop()
                above.pop()
            else:
                self._add_folder(item)
                _refuse_loop(item, above)
                above.append(_identity(item.status))
                levels.append(self._items(item))

    def _items(self, folder: "_Scanned") -> Iterator["Names | _Scanned"]:
        """What one folder holds: runs of files, and between them its folders."""
        if folder.files is not None:
            yield folder.files
            return
        prefix = folder.prefix
        files, folders = self._scan(prefix)
        # What is in a folder is named `folder/…`, so that is where the folder belongs.
        names = sorted([*files, *(below + b"/" for below in folders)])
        scanned = self._scan_all([prefix + name[:-1] for name in names if name.endswith(b"/")])
        run: list[bytes] = []
        for name in names:
            if not name.endswith(b"/"):
                run.append(prefix + name)
                continue
            yield names_of(run)
            run = []
            yield next(scanned)
        yield names_of(run)

    def _scan_all(self, folders: list[bytes]) -> Iterator["_Scanned"]:
        """Each of them; several are looked at once if the first one holds nothing but files.

        So it is with classes, of which there may be thousands. Elsewhere we would look in vain.
        """
        for place, name in enumerate(folders):
            scanned = self._scan_folder(name)
            yield scanned
            if scanned.files is not None and not self._looks_ahead:
                yield from self._scan_ahead(folders[place + 1 :], len(scanned.files.lengths))
                return

    def _scan_ahead(self, folders: list[bytes], files: int) -> Iterator["_Scanned"]:
        """Each of them, which hold about so many files."""
        # Handing over a few names takes as long as finding them.
        few = min(_FEW, _FEW_NAMES // (files + 1) + 1)
        some = [folders[place : place + few] for place in range(0, len(folders), few)]
        self._looks_ahead = True
        try:
            for scanned in ahead(self._scan_some, some):
                yield from scanned
        finally:
            self._looks_ahead = False

    def _scan_some(self, folders: list[bytes]) -> list["_Scanned"]:
        return [self._scan_folder(name) for name in folders]

    def _scan_folder(self, name: bytes) -> "_Scanned":
        path = os.path.join(self._source, name)
        try:
            status = os.stat(path)
        except OSError as problem:
            raise unreadable(os.fsdecode(path), problem) from problem
        prefix = name and name + b"/"
        return _Scanned(name, prefix, status, leaf(path, prefix))

    def _scan(self, prefix: bytes) -> tuple[list[bytes], list[bytes]]:
        """Names of files and of folders; links are noted. The kind comes with the name."""
        files: list[bytes] = []
        folders: list[bytes] = []
        path = os.path.join(self._source, prefix)
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        files.append(entry.name)
                    else:
                        self._sort_out(prefix, entry, files, folders)
        except OSError as problem:
            raise unreadable(os.fsdecode(path), problem) from problem
        return files, folders

    def _sort_out(
        self, prefix: bytes, entry: _Entry, files: list[bytes], folders: list[bytes]
    ) -> None:
        """Anything but a plain file."""
        if self._follow and entry.is_symlink():
            refuse_secrets(os.fsdecode(entry.path))
        try:
            mode = entry.stat(follow_symlinks=self._follow).st_mode
        except OSError as problem:
            raise unreadable(os.fsdecode(entry.path), problem) from problem
        if stat.S_ISDIR(mode):
            folders.append(entry.name)
        elif stat.S_ISREG(mode):
            files.append(entry.name)
        elif stat.S_ISLNK(mode):
            self._add_link(prefix + entry.name, entry)
        else:
            raise _unfit(entry.path, mode)

    def _add_link(self, name: bytes, entry: _Entry) -> None:
        try:
            target = os.readlink(entry.path)
        except OSError as problem:
            raise unreadable(os.fsdecode(entry.path), problem) from problem
        _refuse_leaving(self._source, entry.path, name, target)
        self.links.append(ListedFolder(name, LINK, target))

    def _add_folder(self, scanned: "_Scanned") -> None:
        self.folders.append(ListedFolder(scanned.name, FOLDER, b""))


class _Scanned(NamedTuple):
    """A folder that was looked into."""

    name: bytes
    prefix: bytes  # of the names of what it holds
    status: os.stat_result
    files: Names | None  # if it holds nothing else


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _unfit(path: bytes, mode: int) -> DatasetError:
    what = {stat.S_IFSOCK: "a socket", stat.S_IFIFO: "a named pipe"}.get(stat.S_IFMT(mode))
    return DatasetError(
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
        raise unreadable(os.fsdecode(path), problem) from problem
    if not leads_out(name, target):
        return
    raise DatasetError(
        f"{os.fsdecode(path)} is a link that points outside the dataset",
        why=f"it points to {os.fsdecode(target)}, which is not packed with {os.fsdecode(source)}",
        hint="set `follow_links = true` for this dataset to pack what the link points to",
    )


def _refuse_loop(scanned: _Scanned, above: list[tuple[int, int]]) -> None:
    if _identity(scanned.status) not in above:
        return
    raise DatasetError(
        f"{os.fsdecode(scanned.name)} is a link to a folder that contains it",
        why="following it would never end",
        hint="remove the link, or set `follow_links = false` for this dataset",
    )


def unreadable(path: str, problem: OSError) -> DatasetError:
    """The error for a file or folder of a dataset that cannot be read."""
    what, hint = _TROUBLE.get(problem.errno or 0, ("cannot be read", _OTHER))
    if problem.errno == errno.ENOENT:
        why = "it was removed just now, or it is a broken link"
    else:
        why = problem.strerror or str(problem)
    return DatasetError(f"{path} {what}", why=why, hint=hint)


_LEAVE_OUT = "remove it from the dataset's folder"
_AGAIN = "run the command again when no program changes the folder"
_OTHER = f"if its disk is healthy, run the command again; else {_LEAVE_OUT}"
_PERMISSION = (
    "cannot be read",
    f"make it readable with `chmod u+r` (folders: `u+rx`), or {_LEAVE_OUT}",
)
_GONE = ("vanished while the dataset was packed", _AGAIN)
_CHANGED = ("changed after it was listed", _AGAIN)
_DISK = (
    "cannot be read from its disk",
    f"copy what can still be read to another disk, or {_LEAVE_OUT}; the system's log says more",
)
# What a system says of a file or folder that it does not hand out, and what to do about it.
_TROUBLE = {
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.ENOENT: _GONE,
    errno.ENOTDIR: _CHANGED,
    errno.EISDIR: _CHANGED,
    errno.ENXIO: _CHANGED,
    errno.ESTALE: ("was removed or replaced on its server while the dataset was packed", _AGAIN),
    errno.EIO: _DISK,
    getattr(errno, "EUCLEAN", errno.EIO): _DISK,  # a damaged file system; not on macOS
    errno.ETIMEDOUT: ("is on a server that does not answer", "run the command again later"),
    errno.ELOOP: ("is a link that leads back to itself", "remove the link"),
    errno.ENAMETOOLONG: (
        "has a path that is too long for this system",
        "move the dataset to a folder with a shorter path, or shorten its names",
    ),
    errno.EMFILE: ("cannot be opened", "allow more open files with `ulimit -n`"),
    errno.ENFILE: ("cannot be opened", "too many files are open on this computer; try again later"),
}
