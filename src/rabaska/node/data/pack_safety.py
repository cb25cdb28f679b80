"""Whether a pack can be trusted: nothing is written from one that is damaged or means harm."""

from functools import reduce
from operator import add, le, lt, or_
from typing import Iterable, Set, Tuple

from .index_columns import Files, files_in, names_end, steps, total_size, wrong_name
from .pack_format import FILE, FOLDER, LINK, BadPack, Entry, Index, Manifest
from .pack_proof import open_sealed

_TAR_BLOCK = 512
_NO_NAMES = {b"", b".", b".."}


def open_pack(folder: str) -> Tuple[Manifest, Index]:
    """The manifest and index of the pack in `folder`, both inspected; its shards are not read."""
    manifest, index = open_sealed(folder)
    try:
        refuse_harm(index, manifest)
    except BaseException:
        index.close()
        raise
    return manifest, index


def refuse_harm(index: Index, manifest: Manifest) -> None:
    """Raise BadPack for names that lead out of the tree, twins, and places that lie."""
    folders, links = refuse_bad_tree(index, manifest)
    taken = folders | links
    for begin, end in steps(index):
        listed = files_in(index, begin, end)
        for number in sorted(set(listed.shards)):
            some = listed.of_shard(number)
            if number >= len(manifest.shards):
                raise misplaced(some.names[0])
            refuse_bad_files(some, number, manifest.shards[number].size)
        refuse_bad_parents(listed, folders)
        for name in taken.intersection(listed.names):
            raise twin(name)


def refuse_bad_tree(index: Index, manifest: Manifest) -> Tuple[Set[bytes], Set[bytes]]:
    """The names of folders and links, both inspected; files are left to `refuse_bad_files`."""
    if (index.layout.files, total_size(index)) != (manifest.files, manifest.bytes):
        raise BadPack("index and manifest disagree on the number of files and bytes")
    expected = names_end(index, index.layout.files)
    for record in index.records(index.layout.files, index.layout.entries):
        if record[3] != expected:
            raise wrong_name()
        expected += record[4] + record[5]
    if expected != index.layout.names:
        raise wrong_name()
    folders = _folder_names(index.folders())
    return folders, _link_names(index.links(), folders)


def refuse_bad_files(listed: Files, number: int, size: int) -> None:
    """Raise BadPack unless all these files may be written, and lie in shard `number`."""
    if set(listed.kinds) != {FILE} or max(listed.modes) > 0o777:
        raise BadPack("{!r} is of a kind that is not allowed".format(listed.names[0]))
    _refuse_bad_names(listed)
    follows = map(lt, [listed.before] + listed.names[:-1], listed.names)
    if not all(follows):
        place = next(n for n, name in enumerate(listed.names) if n and listed.names[n - 1] >= name)
        raise twin(listed.names[place])
    ends = list(map(add, listed.offsets, listed.sizes))
    if (
        set(listed.shards) != {number}
        or max(ends) > size
        or min(listed.offsets) < _TAR_BLOCK
        or reduce(or_, listed.offsets) % _TAR_BLOCK
    ):
        raise misplaced(listed.names[0])
    # The next header needs a block of its own.
    if all(map(le, map(_TAR_BLOCK.__add__, ends), listed.offsets[1:])):
        return
    # Archives made by others may be in any order.
    in_order = sorted(zip(listed.offsets, ends))
    for (_, end), (offset, _) in zip(in_order, in_order[1:]):
        if offset < end + _TAR_BLOCK:
            raise misplaced(listed.names[0])


def no_folder(name: bytes) -> BadPack:
    return BadPack("something is in {!r}, a folder that the pack does not contain".format(name))


def misplaced(name: bytes) -> BadPack:
    return BadPack("{!r} is not where the index says".format(name))


def _folder_names(folders: Iterable[Entry]) -> Set[bytes]:
    """The folders' names; each must come after the folder that holds it."""
    names = {b""}
    for entry in folders:
        _refuse_bad_entry(entry, FOLDER, names)
        if entry.name in names:
            raise twin(entry.name)
        names.add(entry.name)
    return names


def _link_names(links: Iterable[Entry], folders: Set[bytes]) -> Set[bytes]:
    names = set()  # type: Set[bytes]
    for entry in links:
        _refuse_bad_entry(entry, LINK, folders)
        if entry.name in names or entry.name in folders:
            raise twin(entry.name)
        if leads_out(entry.name, entry.target):
            raise BadPack("the link {!r} points outside the pack".format(entry.name))
        names.add(entry.name)
    return names


def _refuse_bad_entry(entry: Entry, kind: int, folders: Set[bytes]) -> None:
    _refuse_bad_name(entry.name)
    _refuse_bad_parent(entry.name, folders)
    if entry.kind != kind or entry.mode > 0o777:
        raise BadPack("{!r} is of a kind that is not allowed".format(entry.name))


def _refuse_bad_names(listed: Files) -> None:
    odd = not _NO_NAMES.isdisjoint(listed.bases) or b"\0" in b"".join(listed.bases)
    # In the folders above only names that were looked at; at the top `/x` lies as `x` does.
    if odd or b"" in listed.parents:
        for name in listed.names:
            _refuse_bad_name(name)


def _refuse_bad_name(name: bytes) -> None:
    if name.rpartition(b"/")[2] in _NO_NAMES or b"\0" in name or name[:1] == b"/":
        raise BadPack("{!r} is not a valid name".format(name))


def refuse_bad_parents(listed: Files, folders: Set[bytes]) -> None:
    for parent in set(listed.parents) - folders:
        raise no_folder(parent)


def _refuse_bad_parent(name: bytes, folders: Set[bytes]) -> None:
    if name.rpartition(b"/")[0] not in folders:
        raise no_folder(name.rpartition(b"/")[0])


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


def twin(name: bytes) -> BadPack:
    return BadPack("{!r} occurs twice or is out of order".format(name))
