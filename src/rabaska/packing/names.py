"""Names of files as columns, because an object for each would cost as much as listing it."""

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
