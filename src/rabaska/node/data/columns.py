"""The files of an index as columns: what is asked of thousands of files is asked of all at once."""

import sys
from array import array
from itertools import accumulate
from typing import Any, Iterator, List, NamedTuple, Tuple

from .packs import HEADER, RECORD, DamagedPack, Index

_STEP = 4096  # records, so that memory does not grow with the number of files
# Where the columns stand in a record, counted in words of eight and of four bytes.
_OFFSET, _SIZE, _TIME, _NAME = 0, 1, 2, 3
_LENGTH, _TARGET, _SHARD, _CRC, _MODE, _KIND = range(8, 14)


class Files(NamedTuple):
    """Some files of an index."""

    before: bytes  # the name of the file before the first
    names: List[bytes]
    parents: List[bytes]  # the folders in which they lie
    bases: List[bytes]  # what they are called there
    offsets: List[int]
    sizes: List[int]
    times: List[int]
    shards: List[int]
    crcs: List[int]
    modes: List[int]
    kinds: List[int]

    def of_shard(self, number: int) -> "Files":
        begin = self.shards.index(number)
        end = len(self.shards) - self.shards[::-1].index(number)
        before = self.names[begin - 1] if begin else self.before
        columns: List[Any] = [column[begin:end] for column in self[1:]]
        return Files(before, *columns)


class Places(NamedTuple):
    """Where some files lie."""

    offsets: "array[int]"
    sizes: "array[int]"
    shards: "array[int]"


def files_in(index: Index, begin: int, end: int) -> Files:
    """The files from `begin` to `end`, whose names were found to follow one another."""
    longs, words = _columns(index, "Q", begin, end), _columns(index, "I", begin, end)
    ends = list(accumulate([names_end(index, begin)] + words[_LENGTH::16].tolist()))
    if (
        ends[:-1] != longs[_NAME::8].tolist() or any(words[_TARGET::16])
        or ends[-1] > index.layout.names
    ):  # fmt: skip
        raise wrong_name()
    text, first = index.text(ends[0], ends[-1]), ends[0]
    names = [text[start - first : stop - first] for start, stop in zip(ends, ends[1:])]
    parents, _, bases = zip(*[name.rpartition(b"/") for name in names])
    times = _columns(index, "q", begin, end)[_TIME::8]
    return Files(
        index.entry(begin - 1).name if begin else b"", names, list(parents), list(bases),
        longs[_OFFSET::8].tolist(), longs[_SIZE::8].tolist(), times.tolist(),
        *(words[place::16].tolist() for place in (_SHARD, _CRC, _MODE, _KIND)),
    )  # fmt: skip


def places_in(index: Index, begin: int, end: int) -> Places:
    longs, words = _columns(index, "Q", begin, end), _columns(index, "I", begin, end)
    return Places(longs[_OFFSET::8], longs[_SIZE::8], words[_SHARD::16])


def steps(index: Index, step: int = _STEP) -> Iterator[Tuple[int, int]]:
    """From where to where, again and again, until every file was met."""
    for begin in range(0, index.layout.files, step):
        yield begin, min(begin + step, index.layout.files)


def total_size(index: Index) -> int:
    return sum(sum(_columns(index, "Q", *step)[_SIZE::8]) for step in steps(index))


def names_end(index: Index, position: int) -> int:
    """Where the name of the file before `position` ends, by its own account."""
    if position == 0:
        return 0
    record = index.record(position - 1)
    return record[3] + record[4] + record[5]


def wrong_name() -> DamagedPack:
    return DamagedPack("a record of the index points to the wrong name")


def _columns(index: Index, kind: str, begin: int, end: int) -> "array[int]":
    """The records as words, of which every eighth or sixteenth makes a column."""
    first, last = (HEADER.size + place * RECORD.size for place in (begin, end))
    words = array(kind, index.map[first:last])
    if sys.byteorder == "big":
        words.byteswap()
    return words
