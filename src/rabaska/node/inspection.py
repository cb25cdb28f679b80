"""Whether a pack can be trusted: nothing is written from one that is damaged or means harm."""

import os
from typing import Iterable, List, Set, Tuple

from .packs import (
    FILE,
    FOLDER,
    INDEX,
    LINK,
    DamagedPack,
    Entry,
    Index,
    Manifest,
    load_manifest,
    sha256_of,
)  # fmt: skip

_TAR_BLOCK = 512


def open_pack(folder: str) -> Tuple[Manifest, Index]:
    """The manifest and index of the pack in `folder`, both inspected; its shards are not read."""
    manifest = load_manifest(folder)
    refuse_wrong_sizes(folder, manifest)
    path = os.path.join(folder, INDEX)
    if sha256_of(path) != manifest.index_sha256:
        raise DamagedPack("the index in {} was damaged".format(folder))
    index = Index(path)
    try:
        refuse_harm(index, manifest)
    except BaseException:
        index.close()
        raise
    return manifest, index


def verify(folder: str) -> List[str]:
    """Everything that is wrong with the pack in `folder`, one sentence each; reads every byte."""
    try:
        manifest, index = open_pack(folder)
    except (DamagedPack, OSError) as problem:
        return [str(problem)]
    index.close()
    problems = []
    for shard in manifest.shards:
        if sha256_of(os.path.join(folder, shard.name)) != shard.sha256:
            problems.append("{} in {} was damaged".format(shard.name, folder))
    return problems


def refuse_wrong_sizes(folder: str, manifest: Manifest) -> None:
    # Sizes first: a transfer cut short is the common case, and this costs no reading.
    _refuse_wrong_size(os.path.join(folder, INDEX), manifest.index_size)
    for shard in manifest.shards:
        _refuse_wrong_size(os.path.join(folder, shard.name), shard.size)


def _refuse_wrong_size(path: str, size: int) -> None:
    try:
        found = os.stat(path).st_size
    except FileNotFoundError:
        raise DamagedPack("{} is missing".format(path))
    if found != size:
        raise DamagedPack("{} has {} bytes, not {}".format(path, found, size))


def refuse_harm(index: Index, manifest: Manifest) -> None:
    """Raise DamagedPack for names that lead out of the tree, twins, and places that lie."""
    _refuse_lying_names(index)
    folders = _folder_names(index.folders())
    links = _link_names(index.links(), folders)
    total = _refuse_bad_files(index.files(), folders, links, manifest)
    if (index.layout.files, total) != (manifest.files, manifest.bytes):
        raise DamagedPack("index and manifest do not hold the same number of files and bytes")


def _refuse_lying_names(index: Index) -> None:
    """Names follow one another without gaps, so that no record can point elsewhere."""
    expected = 0
    for position in range(len(index)):
        record = index.record(position)
        if record[3] != expected:
            raise DamagedPack("record {} of the index points to the wrong name".format(position))
        expected += record[4] + record[5]
    if expected != index.layout.names:
        raise DamagedPack("the names in the index are not as long as it says")


def _folder_names(folders: Iterable[Entry]) -> Set[bytes]:
    """The folders' names; each must come after the folder that holds it."""
    names = {b""}
    for entry in folders:
        _refuse_bad_entry(entry, FOLDER, names)
        if entry.name in names:
            raise _twin(entry)
        names.add(entry.name)
    return names


def _link_names(links: Iterable[Entry], folders: Set[bytes]) -> Set[bytes]:
    names = set()  # type: Set[bytes]
    for entry in links:
        _refuse_bad_entry(entry, LINK, folders)
        if entry.name in names or entry.name in folders:
            raise _twin(entry)
        if leads_out(entry.name, entry.target):
            raise DamagedPack("the link {!r} leads out of the pack".format(entry.name))
        names.add(entry.name)
    return names


def _refuse_bad_files(
    entries: Iterable[Entry], folders: Set[bytes], links: Set[bytes], manifest: Manifest
) -> int:
    """Bytes in all files, each of which lies in its shard, after the one before it."""
    total, free, shard, previous = 0, _TAR_BLOCK, 0, b""
    sizes = [shard.size for shard in manifest.shards]
    for entry in entries:
        _refuse_bad_entry(entry, FILE, folders)
        if entry.name <= previous or entry.name in folders or entry.name in links:
            raise _twin(entry)
        if entry.shard > shard:
            free, shard = _TAR_BLOCK, entry.shard
        if (
            entry.shard != shard or shard >= len(sizes) or entry.offset < free
            or entry.offset % _TAR_BLOCK or entry.offset + entry.size > sizes[shard]
        ):  # fmt: skip
            raise DamagedPack("{!r} does not lie where the index says".format(entry.name))
        # The next header needs a block of its own.
        free = entry.offset + entry.size + _TAR_BLOCK
        total, previous = total + entry.size, entry.name
    return total


def _refuse_bad_entry(entry: Entry, kind: int, folders: Set[bytes]) -> None:
    parent, _, base = entry.name.rpartition(b"/")
    if base in (b"", b".", b"..") or b"\0" in base or entry.name[:1] == b"/":
        raise DamagedPack("{!r} is not a name that may be written".format(entry.name))
    if parent not in folders:
        raise DamagedPack("{!r} lies in a folder that the pack does not hold".format(entry.name))
    if entry.kind != kind or entry.mode > 0o777:
        raise DamagedPack("{!r} is of a kind that may not be written".format(entry.name))


def leads_out(name: bytes, target: bytes) -> bool:
    """Whether a link called `name` that points to `target` could leave the tree it stands in.

    Steps up are counted only before the first step down: after one, `..` may start from another
    link and lead anywhere.
    """
    if not target or target.startswith(b"/") or b"\0" in target:
        return True
    steps = [part for part in target.split(b"/") if part not in (b"", b".")]
    down = next((place for place, part in enumerate(steps) if part != b".."), len(steps))
    return down > name.count(b"/") or b".." in steps[down:]


def _twin(entry: Entry) -> DamagedPack:
    return DamagedPack("{!r} is there twice or out of order".format(entry.name))
