"""Small files into tar form, many at a time: headers, contents and padding in one piece.

A line of Python for each file would cost as much as reading it, so files are taken as columns.
Where the compiled library can be loaded, C does the same: the same bytes, sooner.
"""

import os
import stat
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate, chain, compress, count, repeat
from operator import attrgetter
from typing import NamedTuple
from zlib import crc32

from rabaska.node.data import pack_format, tar_headers
from rabaska.node.data.pack_format import FILE, RECORD
from rabaska.node.data.tar_headers import BLOCK

SMALL = 2**18  # files below this size are taken many at a time
# The fingerprint of a file: it changes when the content does.
FACTS = attrgetter("st_size", "st_mtime_ns", "st_mode", "st_ino", "st_ctime_ns")
SIZE, TIME, MODE, INODE, CHANGED = range(5)
PADS = [bytes(-size % BLOCK) for size in range(BLOCK)]

_AT_ONCE = 64  # files that are open at the same time
_NUMBERS = len((SIZE, TIME, MODE, INODE, CHANGED))
_HALF = 2**63  # larger numbers are taken as C takes them, so that two of them stay two


class Portion(NamedTuple):
    """Files that follow one another, as they stand in a tar."""

    names: list[bytes]
    tar: bytes | memoryview
    facts: "array[int]"  # five numbers for each file
    crcs: "array[int]"
    header: int = BLOCK  # bytes before each content

    def column(self, fact: int) -> "array[int]":
        return self.facts[fact::_NUMBERS]

    def one_by_one(self) -> Iterator["Portion"]:
        at = 0
        for place, size in enumerate(self.column(SIZE)):
            end = at + self.header + size + -size % BLOCK
            yield Portion(
                self.names[place : place + 1],
                self.tar[at:end],
                self.facts[place * _NUMBERS : (place + 1) * _NUMBERS],
                self.crcs[place : place + 1],
                self.header,
            )
            at = end


def numbers(rows: Iterable[tuple[int, ...]]) -> "array[int]":
    """Facts about files in a form that can be digested."""
    plain = list(chain.from_iterable(rows))
    try:
        return array("q", plain)
    except OverflowError:  # the number of a file on some file systems, or a time after 2262
        return array("q", [(number + _HALF) % (2 * _HALF) - _HALF for number in plain])


def take(names: list[bytes], flags: int) -> Portion:
    """The first of these files, opened with `flags`, up to one that is not small and ordinary.

    Not ordinary is what plain tar cannot say, what changes while it is read and what cannot be
    read: such a file has to be looked at alone. None may be taken.
    """
    names = names[:_AT_ONCE]
    statuses, contents = _read(names, flags)
    facts = numbers(map(FACTS, statuses))
    taken = _ordinary(names, facts, contents)
    return _portion(names[:taken], facts[: taken * _NUMBERS], contents[:taken])


def alone(name: bytes, status: os.stat_result, content: bytes) -> Portion:
    """One file that was read whole; tar may need more than a plain header for it."""
    size, (mode,) = status.st_size, tar_headers.kept_modes([status.st_mode])
    header = tar_headers.header(name, size=size, mode=mode, mtime=pack_format.TIME)
    tar = b"".join((header, content, PADS[size % BLOCK]))
    return Portion([name], tar, numbers([FACTS(status)]), array("I", [crc32(content)]), len(header))


def records(portion: Portion, labels: "array[int]", offset: int, names_at: int) -> bytes:
    """Their records in the index, when the portion begins at `offset` in its shard."""
    lengths = list(map(len, portion.names))
    sizes = portion.column(SIZE).tolist()
    steps = [portion.header + size + -size % BLOCK for size in sizes[:-1]]
    offsets = accumulate(steps, initial=offset + portion.header)
    places = accumulate(lengths[:-1], initial=names_at)
    modes = tar_headers.kept_modes(portion.column(MODE))
    zeros = repeat(0)
    return b"".join(
        map(
            RECORD.pack,
            offsets,
            sizes,
            repeat(pack_format.TIME * 10**9),
            places,
            lengths,
            zeros,
            zeros,
            portion.crcs,
            modes,
            repeat(FILE),
            labels,
            zeros,
        )
    )


def _read(names: list[bytes], flags: int) -> tuple[list[os.stat_result], list[bytes]]:
    """What the files are and hold; only the first of them if one cannot be read."""
    opened: list[int] = []
    contents: list[bytes] = []
    with suppress(OSError):  # those before it are in the list, and it is asked again alone
        opened.extend(map(os.open, names, repeat(flags)))
    try:
        statuses = list(map(os.fstat, opened))
        # One byte more than it has, so that a file that grew shows itself.
        sizes = [
            status.st_size + 1 if status.st_size < SMALL and stat.S_ISREG(status.st_mode) else 0
            for status in statuses
        ]
        with suppress(OSError):
            contents.extend(map(os.read, opened, sizes))
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return statuses, contents


def _ordinary(names: list[bytes], facts: "array[int]", contents: list[bytes]) -> int:
    """How many of them, from the first on, are small and ordinary files."""
    sizes, modes = (facts[fact::_NUMBERS] for fact in (SIZE, MODE))
    if not sizes:
        return 0
    if (
        list(map(len, contents)) == sizes.tolist()
        and all(map(stat.S_ISREG, set(modes)))
        and tar_headers.are_plain(names)
    ):
        return len(sizes)
    odd = (
        len(content) != size or not stat.S_ISREG(mode) or not tar_headers.are_plain([name])
        for name, content, size, mode in zip(names, contents, sizes, modes, strict=False)
    )
    return next(compress(count(), odd), len(contents))


def _portion(names: list[bytes], facts: "array[int]", contents: list[bytes]) -> Portion:
    sizes = facts[SIZE::_NUMBERS].tolist()
    modes = tar_headers.kept_modes(facts[MODE::_NUMBERS])
    seconds = [pack_format.TIME] * len(sizes)
    pads = map(PADS.__getitem__, [size % BLOCK for size in sizes])
    columns = (*tar_headers.plain_headers(names, sizes, modes, seconds), contents, pads)
    tar = b"".join(chain.from_iterable(zip(*columns, strict=True)))
    return Portion(names, tar, facts, array("I", map(crc32, contents)))
