"""An archive that may be hostile, unpacked: nothing leaves its folder.

`tarfile` filters members only from Python 3.11.4 on, so each one is checked and made here. No name
leads through a link, and nothing is written into what another member made.
"""

import os
import tarfile
import zipfile
from pathlib import Path

from rabaska.node.data.inspection import leads_out
from rabaska.packing.archives import cleaned, link_or_copy, refuse_name, unfit

_MODE = 0o755  # permissions that a member may have
_OWN = 0o600  # and those that it always gets: what cannot be read cannot be packed


def unpack(archive: Path, folder: Path) -> None:
    try:
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as zipped:
                for member in zipped.infolist():
                    refuse_name(archive, member.filename)
                zipped.extractall(folder)  # noqa: S202 -- every name was looked at
        else:
            with tarfile.open(archive) as tar:
                _Unpacking(archive, str(folder)).take(tar)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, RuntimeError, UnicodeError) as problem:
        raise unfit(archive, str(problem)) from problem


class _Unpacking:
    def __init__(self, archive: Path, folder: str) -> None:
        self._archive = archive
        self._folder = folder
        self._folders = {""}  # made so far, by their names in the archive
        self._files: set[str] = set()
        self._times: dict[str, float] = {}

    def take(self, tar: tarfile.TarFile) -> None:
        for member in tar:
            name = cleaned(self._archive, member.name)
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
                raise unfit(self._archive, f"the link {name} leads out of it")
            os.symlink(member.linkname, path)
        elif member.islnk():
            target = cleaned(self._archive, member.linkname)
            if target not in self._files:
                raise unfit(self._archive, f"{name} is a link to {target}, which is no file in it")
            link_or_copy(self._path(target), path)
            self._files.add(name)
        elif member.isreg():
            tar.makefile(member, path)
            os.chmod(path, member.mode & _MODE | _OWN)
            self._files.add(name)
        else:
            raise unfit(self._archive, f"{name} is a device or a pipe, not a file")

    def _make_folder(self, name: str) -> None:
        if name in self._folders:
            return
        self._make_folder(name.rpartition("/")[0])
        try:
            os.mkdir(self._path(name))
        except FileExistsError:
            raise unfit(self._archive, f"{name} is a folder and something else in it") from None
        self._folders.add(name)

    def _free(self, name: str) -> str:
        """The path of `name`, free for it: of two that have one name, the later one counts."""
        path = self._path(name)
        if name in self._folders:
            raise unfit(self._archive, f"{name} is a folder and something else in it")
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
            why = f"{name} has a time that no file can have ({time}): {problem}"
            raise unfit(self._archive, why) from problem
