"""Names of files as columns, because an object for each would cost as much as listing it."""

import os
from array import array
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import NamedTuple
from zlib import crc32


class Names(NamedTuple):
    text: bytes  # one after the other
    lengths: "array[int]"
    hashes: "array[int]"  # which decide where shards may part

    def one_by_one(self) -> Iterator[bytes]:
        for begin, end in pairwise(accumulate(self.lengths, initial=0)):
            yield self.text[begin:end]


def names_of(names: list[bytes]) -> Names:
    return Names(b"".join(names), array("I", map(len, names)), array("I", map(crc32, names)))


def leaf_of(path: bytes, prefix: bytes) -> Names | None:
    """The files of a folder that holds nothing else, in order; None if it does, or may."""
    names = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_file(follow_symlinks=False):
                    return None
                names.append(entry.name)
    except OSError:
        return None
    return names_of([prefix + name for name in sorted(names)])
