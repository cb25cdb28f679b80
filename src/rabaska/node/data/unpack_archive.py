"""An archive that somebody made, unpacked so that nothing leaves the folder it is unpacked into."""

import errno
import os
import shutil
import struct
import tarfile
import zipfile
import zlib
from typing import Dict, Set

from .pack_safety import leads_out

try:
    from lzma import LZMAError
except ImportError:  # a Python that was built without it
    LZMAError = EOFError  # type: ignore[misc,assignment]

COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".zip")
_MODE = 0o755  # permissions that a member may have
_OWN = 0o600  # and those that it always gets: what cannot be read cannot be packed
_PIECE = 2**20
# What reading one raises that is damaged: beside their own, whatever a number that lies leads to.
DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    LZMAError,
    struct.error,
    EOFError,
    RuntimeError,
    ValueError,
    ArithmeticError,
    LookupError,
    MemoryError,
)


class BadArchive(Exception):
    """An archive is damaged, or was made to do harm."""


def is_archive(path: str) -> bool:
    return path.lower().endswith(COMPRESSED + (".tar",)) and os.path.isfile(path)


def unpack(archive: str, folder: str) -> None:
    """Unpack `archive` into the empty `folder`; BadArchive says what is wrong with it."""
    try:
        if archive.lower().endswith(".zip"):
            with zipfile.ZipFile(archive) as zipped:
                for member in zipped.infolist():
                    refuse_name(member.filename)
                zipped.extractall(folder)  # every name was looked at
        else:
            with open_tar(archive) as tar:
                _Unpacking(folder).take(tar)
                _read_to_end(tar)
    except DAMAGED as problem:
        raise BadArchive(str(problem)) from problem
    except OSError as problem:
        # So gzip and bzip2 say that what they read is damaged; a place before the beginning of a
        # file, and a name that no file can have, are lies, too.
        if problem.errno in (None, errno.EINVAL, errno.ENAMETOOLONG):
            raise BadArchive(str(problem)) from problem
        if isinstance(problem, (NotADirectoryError, IsADirectoryError, FileExistsError)):
            name = os.path.relpath(problem.filename or folder, folder)
            raise BadArchive("{} is inside something that is not a folder".format(name))
        raise


def open_tar(archive: str, mode: str = "r") -> tarfile.TarFile:
    """The archive to be read; ReadError where it is damaged or cut short, at the latest there."""
    return tarfile.open(archive, mode, tarinfo=_Member)  # type: ignore[call-overload,no-any-return]


class _Member(tarfile.TarInfo):
    """Python takes a damaged header, or none, for the end; a tar really ends with zeros."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> "_Member":
        try:
            return super().fromtarfile(tar)
        except tarfile.HeaderError as problem:
            what = type(problem).__name__
            if not tar.offset or what in ("EOFHeaderError", "SubsequentHeaderError"):
                raise
            told = "it is damaged or cut short after {} bytes: {}".format(tar.offset, problem)
            raise tarfile.ReadError(told)

    def _block(self, count: int) -> int:
        """Python before 3.14 takes a size below zero, and reads the same header for ever."""
        if count < 0:
            raise tarfile.ReadError("{} has a size below zero".format(self.name))
        return int(super()._block(count))  # type: ignore[misc]


def _read_to_end(tar: tarfile.TarFile) -> None:
    """After its last member: what was compressed has its checksum there."""
    while tar.fileobj is not None and tar.fileobj.read(_PIECE):
        pass


def cleaned(name: str) -> str:
    refuse_name(name)
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def refuse_name(name: str) -> None:
    if name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise BadArchive("{!r} points outside it".format(name))


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another disk, or a file system without hard links
        shutil.copyfile(source, target)


class _Unpacking:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._folders = {""}  # made so far, by their names in the archive
        self._files: Set[str] = set()
        self._times: Dict[str, float] = {}

    def take(self, tar: tarfile.TarFile) -> None:
        for member in tar:
            name = cleaned(member.name)
            if name:
                self._make(tar, member, name)
                self._times[name] = member.mtime
            tar.members = []  # type: ignore[attr-defined]  # it would keep every header
        # Last of all: what is made in a folder changes the folder's time.
        for name, time in self._times.items():
            self._set_time(name, time)

    def _make(self, tar: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        if member.isdir():
            self._make_folder(name)
            return
        self._make_folder(name.rpartition("/")[0])
        path = self._free(name)
        if member.issym():
            if leads_out(os.fsencode(name), os.fsencode(member.linkname)):
                raise BadArchive("the link {} points outside it".format(name))
            os.symlink(member.linkname, path)
        elif member.islnk():
            target = cleaned(member.linkname)
            if target not in self._files:
                raise BadArchive(
                    "{} is a link to {}, which is not a file in it".format(name, target)
                )
            link_or_copy(self._path(target), path)
            self._files.add(name)
        elif member.isreg():
            tar.makefile(member, path)
            os.chmod(path, member.mode & _MODE | _OWN)
            self._files.add(name)
        else:
            raise BadArchive("{} is a device or a pipe, not a file".format(name))

    def _make_folder(self, name: str) -> None:
        if name in self._folders:
            return
        self._make_folder(name.rpartition("/")[0])
        try:
            os.mkdir(self._path(name))
        except FileExistsError:
            raise BadArchive("{} is both a folder and something else in it".format(name))
        self._folders.add(name)

    def _free(self, name: str) -> str:
        """The path of `name`, free for it: of two that have one name, the later one counts."""
        path = self._path(name)
        if name in self._folders:
            raise BadArchive("{} is both a folder and something else in it".format(name))
        if name in self._times:
            os.unlink(path)
            self._files.discard(name)
        return path

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _set_time(self, name: str, time: float) -> None:
        try:
            os.utime(self._path(name), (time, time), follow_symlinks=False)
        except (OSError, OverflowError, ValueError) as problem:
            raise BadArchive(
                "{} has an impossible modification time ({}): {}".format(name, time, problem)
            ) from problem
