"""What the library does, as Python functions: for many small files at once, to the same bytes."""

import zlib
from array import array
from ctypes import byref, c_int64, c_uint64
from typing import Any, Iterator, List, Optional, Sequence, Tuple

from . import growing
from .buffers import Pinned, address, column, unwritten
from .library import Pack, library

NUMBERS = growing.NUMBERS  # told of each file that is taken
NativeShard, Tree = growing.NativeShard, growing.Tree
_HEADER, _RECORD = 64, 64  # bytes of an index, before all files and for each of them
_SHORT, _SHORT_VIEW = 2048, 16384  # bytes that zlib sums sooner than C can be called


def crc32(data: Any, value: int = 0) -> int:
    """As zlib gives it."""
    if len(data) < (_SHORT if type(data) is bytes else _SHORT_VIEW):
        return zlib.crc32(data, value)
    if type(data) is bytes:
        return int(library.crc32(value, data, len(data)))
    with Pinned(data) as (buffer,):
        return int(library.crc32(value, buffer.address, buffer.size))


def joined_crc32(first: int, second: int, length: int) -> int:
    """The crc32 of two parts one after the other, of which the second has `length` bytes."""
    return int(library.joined_crc32(first, second, length))


def leaf(path: bytes, prefix: bytes) -> Optional[Tuple[bytes, "array[int]", "array[int]"]]:
    """The names of the files in a folder in the order of their bytes, each after `prefix`.

    One text, and the length and crc32 of each. None if it holds anything else or cannot be read.
    """
    count, length = c_uint64(), c_uint64()
    folder = library.folder(path, byref(count), byref(length))
    if not folder:
        return None
    text = unwritten(length.value + count.value * len(prefix))
    lengths, crcs = column("I", count.value), column("I", count.value)
    library.names(folder, prefix, len(prefix), text, address(lengths), address(crcs))
    return text, lengths, crcs


class NotPlain(Exception):
    """There is something else than files and folders, or looking into them takes long."""


# Names that come at once, and bytes of them: little, because fresh memory costs as much as listing.
_MANY, _ROOM = 8192, 2**18


def walk(
    path: bytes,
) -> Iterator[Tuple[bytes, "array[int]", "array[int]", List[bytes]]]:
    """All files below a folder in the order of their bytes, many at a time.

    Their names as one text, the length and crc32 of each; and the names of the folders entered.
    """
    handle = library.walk_begin(path)
    if not handle:
        raise NotPlain()
    lengths, crcs, counts = column("I", _MANY), column("I", _MANY), column("q", 3)
    text, folders = unwritten(_ROOM), unwritten(_ROOM)
    places = [address(one) for one in (lengths, crcs, counts)]
    more = 1
    try:
        while more:
            more = library.walk_next(
                handle, text, _ROOM, places[0], places[1], _MANY, folders, places[2]
            )
            if more < 0:
                raise NotPlain()
            files, names, below = counts
            # A copy each: C writes into the same memory again.
            entered = bytes(memoryview(folders)[:below]).split(b"\0")[:-1]
            yield bytes(memoryview(text)[:names]), lengths[:files], crcs[:files], entered
    finally:
        library.walk_end(handle)


def below(numbers: Any, limit: int, most: int) -> List[int]:
    """The places of 32-bit numbers below a limit, `most` of them at most."""
    places = column("q", most)
    with Pinned(numbers) as (buffer,):
        found = library.below(buffer.address, buffer.size // 4, limit, address(places), most)
    return places[:found].tolist()


def stats(
    names: Any, ends: Any, place: int, start: int, count: int, follow: bool
) -> Optional[Tuple["array[int]", "array[int]"]]:
    """Five numbers about each of so many files, and how many bytes of tar it takes.

    `ends` says where each name ends; the first is at `place` there, and begins at `start`. Zero
    bytes: Python has to say. None if one of them cannot be asked.
    """
    facts, lengths = column("q", NUMBERS * count), column("q", count)
    with Pinned(names, ends) as (text, places):
        at = places.address + 8 * place
        found = library.stats(
            text.address, at, start, count, int(follow), address(facts), address(lengths)
        )
    return (facts, lengths) if found == count else None


def take(
    names: Sequence[bytes], flags: int, small: int, room: int
) -> Tuple[bytes, int, "array[int]", "array[int]"]:
    """The first of these files in tar form.

    Up to `room` bytes, or to one that is not an ordinary file of less than `small` bytes. How many
    bytes of the tar these are, the others mean nothing; five numbers and a crc32 for each.
    """
    count = len(names)
    tar, used = unwritten(room), c_int64()
    facts, crcs = column("q", NUMBERS * count), column("I", count)
    taken = library.take(
        b"\0".join(names) + b"\0",
        count,
        flags,
        small,
        tar,
        room,
        address(facts),
        address(crcs),
        byref(used),
    )
    return tar, used.value, facts[: taken * NUMBERS], crcs[:taken]


def records(
    lengths: "array[int]",
    facts: "array[int]",
    crcs: "array[int]",
    labels: "array[int]",
    header: int,
    offset: int,
    names_at: int,
) -> bytes:
    """The index records of files that follow one another from `offset` in their shard."""
    count = len(crcs)
    if len(lengths) != count or len(labels) != count or len(facts) != count * NUMBERS:
        raise ValueError("the columns are not equally long")
    made = unwritten(count * _RECORD)
    columns = map(address, (lengths, facts, crcs, labels))
    library.records(count, *columns, header, offset, names_at, made)
    return made


def unpack(
    index: Any,
    count: int,
    names_at: int,
    begin: int,
    end: int,
    shard: int,
    window: Any,
    offset: int,
    top: int,
) -> int:
    """Write the files from `begin` to `end` of an index, which has so many, below the folder `top`.

    They lie in `window`, which is what the shard holds from `offset` on. How many were written: up
    to the first that is not ordinary, not what was packed, or could not be written.
    """
    with Pinned(index, window) as (map_, part):
        return int(
            library.unpack(
                map_.address,
                map_.size,
                count,
                names_at,
                begin,
                end,
                shard,
                part.address,
                part.size,
                offset,
                top,
            )
        )


def samples(
    index: Any,
    count: int,
    positions: Sequence[int],
    shards: "array[int]",
    most: int,
    proven: Any,
    compared: Any,
) -> Optional[Tuple[List[bytes], List[int]]]:
    """What the files at these positions of an index hold, and their classes.

    `shards` has the descriptor of each, -1 for one that is not open. None, for Python to look
    closer, where a position or shard is not there, a read brings less than it should or something
    else than was packed, or all are over `most` bytes. Of a shard whose byte in `proven` is 1
    nothing is compared, nor a sample whose byte in `compared` is 1; it becomes so once it was.
    """
    if not 0 <= count <= (len(index) - _HEADER) // _RECORD:
        raise ValueError("the index does not hold so many files")
    try:
        wanted = array("q", positions)
    except OverflowError:
        return None
    ends, labels = column("q", len(wanted)), column("i", len(wanted))
    at = address(wanted)
    with Pinned(index, proven, compared) as (map_, shown, noted):
        pack = Pack(
            map_.address,
            map_.size,
            count,
            address(shards),
            len(shards),
            shown.address,
            shown.size,
            noted.address,
            noted.size,
        )
        size = library.places(pack, at, len(wanted), most, address(ends), address(labels))
        if size < 0:
            return None
        room = unwritten(size)
        if not library.samples(pack, at, len(wanted), room, size):
            return None
    begins = [0] + ends[:-1].tolist()
    return [room[begin:end] for begin, end in zip(begins, ends)], labels.tolist()
