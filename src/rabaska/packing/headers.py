"""POSIX tar headers built by hand, the same bytes for the same file on every machine.

`tarfile` spends ten times longer on a small file than it takes to read it. Owners are always 0
and times are whole seconds; what tar cannot say (nanoseconds) stands in the index of the pack.
"""

BLOCK = 512
END = bytes(2 * BLOCK)  # two empty blocks end a tar file

FILE, LINK, FOLDER = b"0", b"2", b"5"
_EXTENDED = b"x"

_NAME_ROOM = 100
_LARGEST_SIZE = 8**11 - 1
_LATEST_TIME = 8**11 - 1

# Owner and group 0; then the magic of POSIX tar, no owner names, device 0:0, no prefix.
_OWNERS = b"0000000\x000000000\x00"
_TAIL = b"ustar\x0000" + bytes(64) + b"0000000\x000000000\x00" + bytes(167)
# The sum counts its own eight bytes as spaces.
_FIXED_SUM = sum(_OWNERS) + sum(_TAIL) + 8 * 0x20


def padding(size: int) -> int:
    """Bytes of zeros that fill the last block of `size` bytes."""
    return -size % BLOCK


def header(
    name: bytes, *, kind: bytes = FILE, size: int = 0, mode: int = 0o644, mtime: int = 0,
    target: bytes = b"",
) -> bytes:  # fmt: skip
    """The header of one entry, preceded by a pax header where plain tar cannot say it."""
    plain = (
        len(name) <= _NAME_ROOM and len(target) <= _NAME_ROOM
        and size <= _LARGEST_SIZE and 0 <= mtime <= _LATEST_TIME
        and name.isascii() and target.isascii()
    )  # fmt: skip
    if plain:
        return _block(name, kind, size, mode, mtime, target)
    return _with_pax(name, kind, size, mode, mtime, target)


def header_size(name: bytes, *, size: int = 0, mtime: int = 0, target: bytes = b"") -> int:
    """How long `header` will be, without building it in the common case."""
    if (
        len(name) <= _NAME_ROOM and not target and size <= _LARGEST_SIZE
        and 0 <= mtime <= _LATEST_TIME and name.isascii()
    ):  # fmt: skip
        return BLOCK
    return len(header(name, size=size, mtime=mtime, target=target))


def _block(name: bytes, kind: bytes, size: int, mode: int, mtime: int, target: bytes) -> bytes:
    numbers = b"%011o\0%011o\0" % (size, mtime)
    mode_field = b"%07o\0" % mode
    total = (
        _FIXED_SUM + sum(name) + sum(mode_field) + sum(numbers) + kind[0] + sum(target)
    )  # fmt: skip
    return b"".join((
        name.ljust(_NAME_ROOM, b"\0"), mode_field, _OWNERS, numbers, b"%06o\0 " % total,
        kind, target.ljust(_NAME_ROOM, b"\0"), _TAIL,
    ))  # fmt: skip


def _with_pax(name: bytes, kind: bytes, size: int, mode: int, mtime: int, target: bytes) -> bytes:
    records = []
    if not (_is_utf8(name) and _is_utf8(target)):
        records.append(_record(b"hdrcharset", b"BINARY"))
    if len(name) > _NAME_ROOM or not name.isascii():
        records.append(_record(b"path", name))
    if len(target) > _NAME_ROOM or not target.isascii():
        records.append(_record(b"linkpath", target))
    if size > _LARGEST_SIZE:
        records.append(_record(b"size", b"%d" % size))
    if not 0 <= mtime <= _LATEST_TIME:
        records.append(_record(b"mtime", b"%d" % mtime))
    body = b"".join(records)
    return b"".join((
        _block(b"././@PaxHeader", _EXTENDED, len(body), 0o644, 0, b""),
        body, bytes(padding(len(body))),
        _block(
            _short(name), kind, size if size <= _LARGEST_SIZE else 0, mode,
            mtime if 0 <= mtime <= _LATEST_TIME else 0, _short(target),
        ),
    ))  # fmt: skip


def _short(text: bytes) -> bytes:
    """What old readers see instead of a name that does not fit."""
    return text.decode("ascii", "replace").encode("ascii", "replace")[:_NAME_ROOM]


def _record(key: bytes, value: bytes) -> bytes:
    """`<length> <key>=<value>` and a newline, where the length counts its own digits."""
    rest = len(key) + len(value) + 3
    length = rest + len(str(rest))
    length = rest + len(str(length))
    return b"%d %s=%s\n" % (length, key, value)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
