"""Links and folders of a pack: the end of its last shard, and records of its index."""

from typing import Dict, Iterable, List, NamedTuple, Sequence, Tuple

from . import tar_headers
from .pack_format import FOLDER, FOLDER_MODE, LINK, LINK_MODE, NO_CLASS, RECORD, TIME


class ListedFolder(NamedTuple):
    """A link or a folder."""

    name: bytes  # relative to the folder that is listed
    kind: int
    target: bytes


def classes(folders: Iterable[ListedFolder]) -> Dict[bytes, int]:
    """The first folders, which image datasets call their classes, and their places."""
    first = [folder.name for folder in folders if b"/" not in folder.name]
    return {name: place for place, name in enumerate(first)}


def tail(
    links: Sequence[ListedFolder], folders: Sequence[ListedFolder], names_at: int
) -> Tuple[bytes, List[bytes]]:
    """Both as blocks of a tar, and as records; their names begin at `names_at` in the index.

    Folders come last, so that `tar xf` sets their times after it wrote what is in them. What the
    disk says of their times and modes does not count.
    """
    place, blocks, records = classes(folders), [], []
    for entry in list(links) + list(folders):
        blocks.append(_header(entry))
        label = place.get(entry.name.partition(b"/")[0], NO_CLASS)
        lengths = (names_at, len(entry.name), len(entry.target))
        records.append(
            RECORD.pack(0, 0, TIME * 10**9, *lengths, 0, 0, _mode(entry), entry.kind, label, 0)
        )
        names_at += len(entry.name) + len(entry.target)
    return b"".join(blocks), records


def _header(entry: ListedFolder) -> bytes:
    folder = entry.kind == FOLDER
    return tar_headers.header(
        entry.name + (b"/" if folder else b""),
        kind=tar_headers.FOLDER if folder else tar_headers.LINK,
        mode=_mode(entry),
        mtime=TIME,
        target=entry.target if entry.kind == LINK else b"",
    )


def _mode(entry: ListedFolder) -> int:
    return FOLDER_MODE if entry.kind == FOLDER else LINK_MODE
