"""The files of an index as columns: what is asked of thousands of files is asked of all at once."""

import sys
from array import array
from itertools import accumulate
from typing import Any, Iterator, List, NamedTuple, Tuple

from .pack_format import HEADER, RECORD, BadPack, Index
from .read_ahead import Part

WINDOW = 2**20  # bytes of neighbours that are read at once
_STEP = 4096  # records, so that memory does not grow with the number of files

Group = Tuple[int, int]  # files from here to there


class FileSpan(NamedTuple):
    """Files that lie side by side in an index and in one shard."""

    shard: int
    begin: int
    end: int


class Word(NamedTuple):
    """Where a column stands in a record, counted in words of its kind."""

    kind: Any  # as `struct` spells it
    place: int


OFFSET, SIZE, _TIME, _NAME = Word("Q", 0), Word("Q", 1), Word("q", 2), Word("Q", 3)
_LENGTH, _TARGET, SHARD, _CRC, _MODE, _KIND = (Word("I", place) for place in range(8, 14))


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
        columns: List[Any] = [values[begin:end] for values in self[1:]]
        return Files(before, *columns)


def files_in(index: Index, begin: int, end: int) -> Files:
    """The files from `begin` to `end`, whose names were found to follow one another."""
    lengths = column(index, _LENGTH, begin, end)
    ends = list(accumulate([names_end(index, begin)] + lengths))
    if (
        ends[:-1] != column(index, _NAME, begin, end)
        or any(column(index, _TARGET, begin, end))
        or ends[-1] > index.layout.names
    ):
        raise wrong_name()
    text, first = index.text(ends[0], ends[-1]), ends[0]
    names = [text[start - first : stop - first] for start, stop in zip(ends, ends[1:])]
    parents, _, bases = zip(*[name.rpartition(b"/") for name in names])
    return Files(
        index.entry(begin - 1).name if begin else b"",
        names,
        list(parents),
        list(bases),
        *(
            column(index, word, begin, end)
            for word in (OFFSET, SIZE, _TIME, SHARD, _CRC, _MODE, _KIND)
        ),
    )


def groups(listed: Files) -> Iterator[Group]:
    """Neighbours that are read at once; a file larger than a window stands alone."""
    begin, start = 0, listed.offsets[0]
    for number, (offset, size) in enumerate(zip(listed.offsets, listed.sizes)):
        if not 0 <= offset + size - start <= WINDOW and number > begin:
            yield begin, number
            begin, start = number, offset
    yield begin, len(listed.names)


def parts(listed: Files, together: List[Group]) -> List[Part]:
    """The windows in which these groups lie."""
    offsets, sizes = listed.offsets, listed.sizes
    return [(offsets[a], offsets[b - 1] + sizes[b - 1] - offsets[a]) for a, b in together]


def column(index: Index, word: Word, begin: int, end: int) -> List[int]:
    """One word of each record, taken out of the map where it lies."""
    first, last = (HEADER.size + place * RECORD.size for place in (begin, end))
    if sys.byteorder == "big":
        swapped = array(word.kind, index.map[first:last])
        swapped.byteswap()
        return swapped[word.place :: RECORD.size // swapped.itemsize].tolist()
    # Nothing may point into the map any more when it is closed.
    with memoryview(index.map) as whole, whole[first:last] as records:
        with records.cast(word.kind) as words:
            return words[word.place :: RECORD.size // words.itemsize].tolist()


def steps(index: Index, step: int = _STEP) -> Iterator[Tuple[int, int]]:
    """From where to where, again and again, until every file was met."""
    for begin in range(0, index.layout.files, step):
        yield begin, min(begin + step, index.layout.files)


def total_size(index: Index) -> int:
    return sum(sum(column(index, SIZE, *step)) for step in steps(index))


def names_end(index: Index, position: int) -> int:
    """Where the name of the file before `position` ends, by its own account."""
    if position == 0:
        return 0
    record = index.record(position - 1)
    return record[3] + record[4] + record[5]


def wrong_name() -> BadPack:
    return BadPack("a record of the index points to the wrong name")
