"""POSIX tar headers built by hand, the same bytes for the same file on every machine.

`tarfile` spends ten times longer on a small file than it takes to read it. Owners are always 0.
"""

import stat
from itertools import repeat
from operator import add, and_
from typing import Iterable, List, Sequence, Tuple
from zlib import adler32

from .pack_format import PLAIN, PROGRAM

PERMISSIONS = 0o777  # set-user-id and its kin mean nothing to a training program
BLOCK = 512
END = bytes(2 * BLOCK)  # two empty blocks end a tar file

FILE, LINK, FOLDER = b"0", b"2", b"5"
_EXTENDED = b"x"

_NAME_ROOM = 100
LARGEST_SIZE = 8**11 - 1
LATEST_TIME = 8**11 - 1

# Mode, owner 0, group 0, size, time; later the magic, no owner names, device 0:0, no prefix.
_START = b"%07o\x000000000\x000000000\x00"
_AMOUNTS = b"%011o\x00%011o\x00"
_CHECK = b"%06o\0 "
_TAIL = b"ustar\x0000" + bytes(64) + b"0000000\x000000000\x00" + bytes(167)
# The sum counts its own eight bytes as spaces.
_FIXED_SUM = sum(_TAIL) + 8 * 0x20
_END_OF_FILE = _CHECK + FILE + bytes(_NAME_ROOM) + _TAIL
_FILE_SUM = _FIXED_SUM + FILE[0] - 1
_NULS = [bytes(_NAME_ROOM - length) for length in range(_NAME_ROOM + 1)]


def kept_modes(modes: Iterable[int]) -> List[int]:
    """What a pack keeps of files' modes: whether their owner may run them."""
    return [PROGRAM if mode & stat.S_IXUSR else PLAIN for mode in modes]


def padding(size: int) -> int:
    """Bytes of zeros that fill the last block of `size` bytes."""
    return -size % BLOCK


def length(name: bytes, size: int) -> int:
    """How many bytes of tar a file takes."""
    plain = size <= LARGEST_SIZE and len(name) <= _NAME_ROOM and _is_ascii(name)
    before = BLOCK if plain else len(header(name, size=size))
    return before + size + padding(size)


def header(
    name: bytes,
    *,
    kind: bytes = FILE,
    size: int = 0,
    mode: int = 0o644,
    mtime: int = 0,
    target: bytes = b"",
) -> bytes:
    """The header of one entry, preceded by a pax header where plain tar cannot say it."""
    plain = (
        len(name) <= _NAME_ROOM
        and len(target) <= _NAME_ROOM
        and size <= LARGEST_SIZE
        and 0 <= mtime <= LATEST_TIME
        and _is_ascii(name)
        and _is_ascii(target)
    )
    if plain:
        return _block(name, kind, size, mode, mtime, target)
    return _with_pax(name, kind, size, mode, mtime, target)


def are_plain(names: Sequence[bytes]) -> bool:
    """Whether names fit into headers as they are."""
    return max(map(len, names)) <= _NAME_ROOM and _is_ascii(b"".join(names))


def plain_headers(
    names: Sequence[bytes], sizes: Sequence[int], modes: Sequence[int], seconds: Sequence[int]
) -> Tuple[Iterable[bytes], ...]:
    """The headers of many files as five columns: each one is a row of them, joined.

    Every name must be plain, every size and time fit into tar. All loops run in C.
    """
    starts = {mode: _START % mode for mode in set(modes)}
    sums = {mode: sum(start) + _FILE_SUM for mode, start in starts.items()}
    amounts = list(map(_AMOUNTS.__mod__, zip(sizes, seconds)))
    # The low half of adler32 is one more than the sum of all bytes, and quicker than sum().
    adlers = map(adler32, amounts, map(adler32, names))
    totals = map(add, map(sums.__getitem__, modes), map(and_, adlers, repeat(0xFFFF)))
    fills = map(_NULS.__getitem__, map(len, names))
    begins = map(starts.__getitem__, modes)
    return names, fills, begins, amounts, map(_END_OF_FILE.__mod__, totals)


def _block(name: bytes, kind: bytes, size: int, mode: int, mtime: int, target: bytes) -> bytes:
    fields = _START % mode + _AMOUNTS % (size, mtime)
    total = _FIXED_SUM + sum(name) + sum(fields) + kind[0] + sum(target)
    return b"".join(
        (
            name.ljust(_NAME_ROOM, b"\0"),
            fields,
            _CHECK % total,
            kind,
            target.ljust(_NAME_ROOM, b"\0"),
            _TAIL,
        )
    )


def _with_pax(name: bytes, kind: bytes, size: int, mode: int, mtime: int, target: bytes) -> bytes:
    records = []
    if not (_is_utf8(name) and _is_utf8(target)):
        records.append(_record(b"hdrcharset", b"BINARY"))
    if len(name) > _NAME_ROOM or not _is_ascii(name):
        records.append(_record(b"path", name))
    if len(target) > _NAME_ROOM or not _is_ascii(target):
        records.append(_record(b"linkpath", target))
    if size > LARGEST_SIZE:
        records.append(_record(b"size", b"%d" % size))
    if not 0 <= mtime <= LATEST_TIME:
        records.append(_record(b"mtime", b"%d" % mtime))
    body = b"".join(records)
    return b"".join(
        (
            _block(b"././@PaxHeader", _EXTENDED, len(body), 0o644, 0, b""),
            body,
            bytes(padding(len(body))),
            _block(
                _short(name),
                kind,
                size if size <= LARGEST_SIZE else 0,
                mode,
                mtime if 0 <= mtime <= LATEST_TIME else 0,
                _short(target),
            ),
        )
    )


def _short(text: bytes) -> bytes:
    """What old readers see instead of a name that does not fit."""
    return text.decode("ascii", "replace").encode("ascii", "replace")[:_NAME_ROOM]


def _record(key: bytes, value: bytes) -> bytes:
    """`<length> <key>=<value>` and a newline, where the length counts its own digits."""
    rest = len(key) + len(value) + 3
    length = rest + len(str(rest))
    length = rest + len(str(length))
    return b"%d %s=%s\n" % (length, key, value)


def _is_ascii(text: bytes) -> bool:
    try:
        text.decode("ascii")
    except UnicodeDecodeError:
        return False
    return True


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
