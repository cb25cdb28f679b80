"""What a folder holds, for a pack that is made on the cluster: names, sizes and modes, in order."""

import os
import stat
from typing import List, NamedTuple, Optional, Set, Tuple

from .pack_format import FOLDER, LINK
from .pack_safety import leads_out
from .pack_tail import ListedFolder


class CannotPack(Exception):
    """Why a folder cannot be packed; `hint` is what to do about it."""

    def __init__(self, what: str, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what, self.why, self.hint = what, why, hint


class TooLarge(Exception):
    """There is more than may be packed here; `files` and `bytes` were seen so far."""

    def __init__(self, files: int, size: int) -> None:
        super().__init__("{} files, {} bytes".format(files, size))
        self.files, self.bytes = files, size


class ListedFile(NamedTuple):
    name: bytes
    size: int
    mode: int


class Limits(NamedTuple):
    """None: there is none."""

    files: Optional[int] = None
    bytes: Optional[int] = None


NO_LIMITS = Limits()


class Tree(NamedTuple):
    files: List[ListedFile]  # in the order of their names, as a pack has them
    links: List[ListedFolder]
    folders: List[ListedFolder]

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


def list_folder(source: str, *, follow_links: bool = False, limits: Limits = NO_LIMITS) -> Tree:
    """All that is in `source`; a single file is listed as if its folder held nothing else."""
    if os.path.isfile(source):
        status = os.stat(source)
        if status.st_size > (limits.bytes or status.st_size):
            raise TooLarge(1, status.st_size)
        name = os.path.basename(os.fsencode(source))
        return Tree([ListedFile(name, status.st_size, status.st_mode)], [], [])
    tree = Tree([], [], [])
    walk = _Walk(os.fsencode(source), tree, follow_links, limits)
    walk.look_into(b"", set())
    if not tree.files:
        raise CannotPack(
            "the dataset in {} is empty".format(source),
            "it contains no files",
            "check the path under [data] in rabaska.toml",
        )
    tree.files.sort()
    tree.links.sort()
    tree.folders.sort()
    return tree


class _Walk:
    def __init__(self, source: bytes, tree: Tree, follow: bool, limits: Limits) -> None:
        self._source = source
        self._tree = tree
        self._follow = follow
        self._limits = limits
        self._bytes = 0

    def look_into(self, name: bytes, above: Set[Tuple[int, int]]) -> None:
        path, prefix = os.path.join(self._source, name), name and name + b"/"
        try:
            status = os.stat(path)
            if (status.st_dev, status.st_ino) in above:
                raise CannotPack(
                    "{} is a link to a folder that contains it".format(os.fsdecode(path)),
                    "following it would never end",
                    "remove the link, or set `follow_links = false` for this dataset",
                )
            folders = []
            with os.scandir(path) as entries:
                for entry in entries:
                    if self._is_folder(prefix, entry):
                        folders.append(prefix + entry.name)
        except OSError as problem:
            raise unreadable(path, problem)
        for folder in folders:
            self._tree.folders.append(ListedFolder(folder, FOLDER, b""))
            self.look_into(folder, above | {(status.st_dev, status.st_ino)})

    def _is_folder(self, prefix: bytes, entry: "os.DirEntry[bytes]") -> bool:
        status = entry.stat(follow_symlinks=self._follow)
        if stat.S_ISDIR(status.st_mode):
            return True
        if stat.S_ISREG(status.st_mode):
            self._tree.files.append(ListedFile(prefix + entry.name, status.st_size, status.st_mode))
            self._refuse_more(status.st_size)
        elif stat.S_ISLNK(status.st_mode):
            self._add_link(prefix + entry.name, os.readlink(entry.path))
        else:
            raise CannotPack(
                "{} cannot be packed".format(os.fsdecode(entry.path)),
                "it is a device, a socket or a pipe, not a file",
                "remove it from the dataset's folder",
            )
        return False

    def _refuse_more(self, size: int) -> None:
        self._bytes += size
        files, most = len(self._tree.files), self._limits
        if files > (most.files or files) or self._bytes > (most.bytes or self._bytes):
            raise TooLarge(files, self._bytes)

    def _add_link(self, name: bytes, target: bytes) -> None:
        if leads_out(name, target):
            raise CannotPack(
                "{} is a link that points outside the dataset".format(os.fsdecode(name)),
                "it points to {}, which is not packed".format(os.fsdecode(target)),
                "set `follow_links = true` for this dataset to pack what the link points to",
            )
        self._tree.links.append(ListedFolder(name, LINK, target))


def unreadable(path: bytes, problem: OSError) -> CannotPack:
    where = os.fsdecode(problem.filename or path)
    return CannotPack(
        "{} cannot be read".format(where),
        problem.strerror or str(problem),
        "make it readable for you, or leave it out of the dataset's folder",
    )
