"""An archive that somebody made: a plain tar is indexed as it lies there, others are unpacked."""

import hashlib
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from zlib import crc32

from rabaska.errors import DatasetError
from rabaska.node import files
from rabaska.node.data import pack_format, unpack_archive
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
from rabaska.node.data.tar_headers import PERMISSIONS
from rabaska.node.data.tree_digest import tree_digest
from rabaska.node.data.unpack_archive import COMPRESSED, link_or_copy

_PIECE = 2**20
_END_OF_TIME = 2**63  # nanoseconds from 1970 on, as an index has room for them


class NeedsUnpacking(Exception):
    """A tar that cannot be read in place: it holds a name twice, hard links or sparse files."""


def is_plain_tar(path: Path) -> bool:
    return path.suffix == ".tar" and path.is_file()


def is_compressed(path: Path) -> bool:
    return path.is_file() and path.name.endswith(COMPRESSED)


def index_in_place(archive: Path, name: str, folder: Path) -> pack_format.Manifest:
    """Make `folder` a pack whose only shard is the archive itself; only its headers are parsed."""
    entries = _entries(archive)
    link_or_copy(str(archive), str(folder / pack_format.shard_name(0)))
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
        with unpack_archive.open_tar(str(archive), "r:") as tar:
            for member in tar:
                name = os.fsencode(_cleaned(archive, member.name))
                if name in entries and not member.isdir():
                    raise NeedsUnpacking(member.name)
                if name:
                    entries[name] = _entry(archive, name, member)
                tar.members = []  # type: ignore[attr-defined]  # it would keep every header
    except unpack_archive.DAMAGED as problem:
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
    if abs(time) >= _END_OF_TIME:
        raise unfit(archive, f"{member.name} has an impossible modification time ({member.mtime})")
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


def _cleaned(archive: Path, name: str) -> str:
    try:
        return unpack_archive.cleaned(name)
    except unpack_archive.BadArchive as problem:
        raise unfit(archive, str(problem)) from problem


def unfit(archive: Path, why: str) -> DatasetError:
    return DatasetError(
        f"{archive} cannot be packed", why=why, hint="unpack it yourself and name the folder"
    )


def _checksums(path: Path, entries: list[Entry]) -> tuple[Shard, dict[bytes, int]]:
    """The shard's digests, and the crc32 of each file in it."""
    digest, crcs, size = tree_digest(), [], 0
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


def unpack(archive: Path, folder: Path) -> None:
    try:
        unpack_archive.unpack(str(archive), str(folder))
    except unpack_archive.BadArchive as problem:
        raise unfit(archive, str(problem)) from problem
