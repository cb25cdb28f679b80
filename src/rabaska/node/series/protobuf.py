"""As much of Protocol Buffers as event files need: the fields of a message, in their order."""

import struct
from typing import Iterator, Tuple, Union

VARINT, DOUBLE, BYTES, FLOAT = 0, 1, 2, 5  # wire types

Span = Tuple[int, int]  # where a field of bytes begins, and where it ends
Field = Tuple[int, int, Union[int, float, Span]]  # its number, its wire type, its value

_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")


class Damaged(ValueError):
    """Bytes that are no such message."""


def varint(data: bytes, at: int, end: int) -> Tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Damaged("a number does not end")


def signed(value: int) -> int:
    """The same 64 bits as a number that may be negative."""
    value &= 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value >> 63 else value


def fields(data: bytes, at: int, end: int) -> Iterator[Field]:
    while at < end:
        key, at = varint(data, at, end)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            told, at = varint(data, at, end)
            yield number, wire, told
            continue
        size = {DOUBLE: 8, FLOAT: 4}.get(wire)
        if wire == BYTES:
            size, at = varint(data, at, end)
        if size is None or at + size > end:
            raise Damaged("a field is longer than its message")
        if wire == BYTES:
            yield number, wire, (at, at + size)
        else:
            unpack = _DOUBLE if wire == DOUBLE else _FLOAT
            yield number, wire, unpack.unpack_from(data, at)[0]
        at += size
