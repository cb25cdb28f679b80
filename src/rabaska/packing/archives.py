"""An archive that somebody made: a plain tar is indexed as it lies there, others are unpacked."""

import hashlib
import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from zlib import crc32

from rabaska.errors import DatasetError
from rabaska.node import files
from rabaska.node.data import pack_format
from rabaska.node.data.pack_format import (
    BLOCK,
    FILE,
    FOLDER,
    LINK,
    NO_CLASS,
    RECORD,
    Entry,
    IndexLayout,
    Shard,
)
from rabaska.node.data.pack_safety import leads_out
from rabaska.packing.tar_headers import PERMISSIONS

_PIECE = 2**20
_COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")


class NeedsUnpacking(Exception):
    """A tar that cannot be read in place: it holds a name twice, hard links or sparse files."""


def is_plain_tar(path: Path) -> bool:
    return path.suffix == ".tar" and path.is_file()


def is_compressed(path: Path) -> bool:
    return path.is_file() and (path.name.endswith(_COMPRESSED) or path.suffix == ".zip")


def index_in_place(archive: Path, name: str, folder: Path) -> pack_format.Manifest:
    """Make `folder` a pack whose only shard is the archive itself; only its headers are parsed."""
    entries = _entries(archive)
    link_or_copy(archive, folder / pack_format.shard_name(0))
    shard, crcs = _checksums(
        folder / pack_format.shard_name(0), [e for e in entries if e.kind == FILE]
    )
    labels = _labels(entries)
    names, records = [], []
    at = 0
    for entry in sorted(entries, key=lambda entry: (entry.kind, entry.name)):
        crc = crcs[entry.name] if entry.kind == FILE else 0
        records.append(
            RECORD.pack(
                entry.offset,
                entry.size,
                entry.mtime_ns,
                at,
                len(entry.name),
                len(entry.target),
                0,
                crc,
                entry.mode,
                entry.kind,
                _label(entry, labels),
                0,
            )
        )
        names.append(entry.name + entry.target)
        at += len(names[-1])
    count, links, folders = (
        sum(entry.kind == kind for entry in entries) for kind in (FILE, LINK, FOLDER)
    )
    index = IndexLayout(count, links, folders, at).header() + b"".join(records) + b"".join(names)
    files.write_whole(str(folder / pack_format.INDEX), index)
    total = sum(entry.size for entry in entries)
    sha256 = hashlib.sha256(index).hexdigest()
    manifest = pack_format.Manifest(name, "", count, total, len(index), sha256, [shard])
    manifest = manifest._replace(digest=pack_format.digest_of(manifest))
    files.write_json(str(folder / pack_format.MANIFEST), pack_format.to_json(manifest))
    return manifest


def _entries(archive: Path) -> list[Entry]:
    """What the tar holds, with the folders that its names imply."""
    entries: dict[bytes, Entry] = {}
    try:
        with tarfile.open(archive, "r:") as tar:
            for member in tar:
                name = os.fsencode(cleaned(archive, member.name))
                if name in entries and not member.isdir():
                    raise NeedsUnpacking(member.name)
                if name:
                    entries[name] = _entry(archive, name, member)
                tar.members = []  # type: ignore[attr-defined]  # it would keep every header
    except (tarfile.TarError, EOFError, UnicodeError) as problem:
        raise unfit(archive, str(problem)) from problem
    if not any(entry.kind == FILE for entry in entries.values()):
        raise unfit(archive, "it contains no files")
    for name in list(entries):
        for above in PurePosixPath(os.fsdecode(name)).parents:
            parent = os.fsencode(str(above))
            if parent != b"." and parent not in entries:
                entries[parent] = Entry(parent, FOLDER, 0, 0, 0, 0o755, 0, 0, NO_CLASS, b"")
            elif parent != b"." and entries[parent].kind != FOLDER:
                raise unfit(
                    archive, f"{os.fsdecode(name)} is inside something that is not a folder"
                )
    return list(entries.values())


def _entry(archive: Path, name: bytes, member: tarfile.TarInfo) -> Entry:
    time, mode = int(member.mtime) * 10**9, member.mode & PERMISSIONS
    if member.isdir():
        return Entry(name, FOLDER, 0, 0, time, mode, 0, 0, NO_CLASS, b"")
    if member.issym():
        target = os.fsencode(member.linkname)
        if leads_out(name, target):
            raise unfit(archive, f"the link {member.name} points outside it")
        return Entry(name, LINK, 0, 0, time, mode, 0, 0, NO_CLASS, target)
    if member.islnk() or member.issparse():
        raise NeedsUnpacking(member.name)
    if not member.isreg():
        raise unfit(archive, f"{member.name} is a device or a pipe, not a file")
    end = member.offset_data + member.size
    if end > archive.stat().st_size:
        raise unfit(archive, f"{member.name} claims to be longer than the archive")
    return Entry(name, FILE, member.offset_data, member.size, time, mode, 0, 0, NO_CLASS, b"")


def cleaned(archive: Path, name: str) -> str:
    refuse_name(archive, name)
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def refuse_name(archive: Path, name: str) -> None:
    if name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise unfit(archive, f"{name!r} points outside it")


def unfit(archive: Path, why: str) -> DatasetError:
    return DatasetError(
        f"{archive} cannot be packed", why=why, hint="unpack it yourself and name the folder"
    )


def link_or_copy(source: Path | str, target: Path | str) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another disk, or a file system without hard links
        shutil.copyfile(source, target)


def _checksums(path: Path, entries: list[Entry]) -> tuple[Shard, dict[bytes, int]]:
    """The shard's digests, and the crc32 of each file in it."""
    digest, crcs, size = hashlib.sha256(), [], 0
    with path.open("rb") as stream:
        for block in iter(lambda: stream.read(BLOCK), b""):
            digest.update(block)
            crcs.append(crc32(block))
            size += len(block)
        sums = {entry.name: _crc(stream.fileno(), entry) for entry in entries}
    return Shard(pack_format.shard_name(0), size, digest.hexdigest(), crcs), sums


def _crc(descriptor: int, entry: Entry) -> int:
    crc = 0
    for piece in _pieces(descriptor, entry):
        crc = crc32(piece, crc)
    return crc


def _pieces(descriptor: int, entry: Entry) -> Iterator[bytes]:
    for done in range(0, entry.size, _PIECE):
        yield os.pread(descriptor, min(_PIECE, entry.size - done), entry.offset + done)


def _labels(entries: list[Entry]) -> dict[bytes, int]:
    first = sorted(e.name for e in entries if e.kind == FOLDER and b"/" not in e.name)
    return {name: place for place, name in enumerate(first)}


def _label(entry: Entry, labels: dict[bytes, int]) -> int:
    first, inside, _ = entry.name.partition(b"/")
    return labels.get(first, NO_CLASS) if inside or entry.kind != FILE else NO_CLASS


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
                raise unfit(self._archive, f"the link {name} points outside it")
            os.symlink(member.linkname, path)
        elif member.islnk():
            target = cleaned(self._archive, member.linkname)
            if target not in self._files:
                raise unfit(
                    self._archive, f"{name} is a link to {target}, which is not a file in it"
                )
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
            raise unfit(
                self._archive, f"{name} is both a folder and something else in it"
            ) from None
        self._folders.add(name)

    def _free(self, name: str) -> str:
        """The path of `name`, free for it: of two that have one name, the later one counts."""
        path = self._path(name)
        if name in self._folders:
            raise unfit(self._archive, f"{name} is both a folder and something else in it")
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
            why = f"{name} has an impossible modification time ({time}): {problem}"
            raise unfit(self._archive, why) from problem
