"""Scalars of TensorBoard's event files, as PyTorch, Lightning, Keras and Hugging Face write them.

A record is its length, the masked CRC of that, an `Event` and its masked CRC. Nearly all records
of a training are one number under a name that came before, and are read without taking them apart.
CRCs are computed only where something looks wrong: that takes longer than all the rest.
"""

import os
import struct
from typing import Dict, List, Optional, Tuple

from . import protobuf
from .protobuf import Damaged
from .sources import Point, Source

_SHORT = struct.Struct("<QIBdB")  # length, its CRC, the key of a time, the time, the key of a step
_LENGTH = struct.Struct("<QI")
_VALUE = struct.Struct("<f")
_CRC = struct.Struct("<I")
_LARGE = 1 << 20  # bytes of a record with pictures or a graph in it
_MASK = 0xFFFFFFFF
_FORMATS = {1: "<f", 2: "<d", 3: "<i", 9: "<q", 19: "<e"}  # of tensors, by their type
_FLOATS = {5: "<f", 6: "<d"}  # fields of a tensor that hold numbers


class EventFile(Source):
    kind = "tensorboard"

    def __init__(self, path: str, offset: int = 0, head: int = 0) -> None:
        Source.__init__(self, path, offset, head)
        self._names: Dict[bytes, str] = {}  # by all that stands between a step and its value
        self._damaged = False

    def begin(self) -> None:
        self._damaged = False

    def points(self, data: bytes) -> List[Point]:
        found: List[Point] = []
        at = 0 if not self._damaged else len(data)
        size, short, value, names = len(data), _SHORT, _VALUE, self._names
        while at + 28 < size:
            length, _, first, moment, second = short.unpack_from(data, at)
            end = at + 12 + length
            if end + 4 > size:
                break
            if first == 0x09 and second == 0x10:
                place, step = at + 23, data[at + 22]
                if step >= 0x80:
                    step, place = _long_step(data, at + 22, end)
                name = names.get(data[place : end - 4])
                if name is not None:
                    told = value.unpack_from(data, end - 4)[0]
                    found.append(Point(name, step, moment, told))
                    at = end + 4
                    continue
            found += self._event(data, at, end)
            at = end + 4
        self.offset += self._behind(data, at)
        return found

    def _behind(self, data: bytes, at: int) -> int:
        """How far was read, and over a record that is too large to hold scalars."""
        if len(data) - at < 12:
            return at
        length, crc = _LENGTH.unpack_from(data, at)
        if masked_crc(data[at : at + 8]) != crc:
            self._damaged = True  # nobody can say where the next record begins
        elif length > _LARGE and at + 12 + length + 4 > len(data):
            return self._over_large(at, length)
        return at

    def _over_large(self, at: int, length: int) -> int:
        whole = at + 12 + length + 4
        return whole if os.stat(self.path).st_size >= self.offset + whole else at

    def _event(self, data: bytes, at: int, end: int) -> List[Point]:
        """All scalars of a record; none of one that is damaged."""
        if end - at > _LARGE:
            return []
        try:
            moment, step, found, place = _read_event(data, at + 12, end)
        except (Damaged, ValueError, struct.error, IndexError):
            return []
        # A bit that changed may still make a message; this is a record that was never seen so.
        if found and masked_crc(data[at + 12 : end]) != _CRC.unpack_from(data, end)[0]:
            return []
        if len(found) == 1 and place and data[end - 5] == 0x15:
            self._names[data[place : end - 4]] = found[0][0]
        return [Point(name, step, moment, value) for name, value in found]


def _long_step(data: bytes, at: int, end: int) -> Tuple[int, int]:
    try:
        step, place = protobuf.varint(data, at, end)
    except Damaged:
        return 0, end
    return protobuf.signed(step), place


def _read_event(
    data: bytes, at: int, end: int
) -> Tuple[Optional[float], int, List[Tuple[str, float]], int]:
    """Its time, its step, its scalars, and where the summary begins if it is all that follows."""
    moment, step, found, place = None, 0, [], 0
    start = at + 10
    for number, wire, value in protobuf.fields(data, at, end):
        if number == 1 and wire == protobuf.DOUBLE:
            moment = float(value)  # type: ignore[arg-type]
        elif number == 2 and wire == protobuf.VARINT:
            step = protobuf.signed(int(value))  # type: ignore[arg-type]
            start = protobuf.varint(data, at + 10, end)[1]
        elif number == 5 and isinstance(value, tuple):
            found = _scalars(data, *value)
            place = start if value[1] == end and data[at] == 0x09 and data[at + 9] == 0x10 else 0
    return moment, step, found, place


def _scalars(data: bytes, at: int, end: int) -> List[Tuple[str, float]]:
    found = []
    for number, _, value in protobuf.fields(data, at, end):
        if number != 1 or not isinstance(value, tuple):
            continue
        name, number_told = "", None  # type: str, Optional[float]
        for inner, wire, told in protobuf.fields(data, *value):
            if inner == 1 and isinstance(told, tuple):
                name = data[told[0] : told[1]].decode("utf-8", "replace")
            elif inner == 2 and wire == protobuf.FLOAT:
                number_told = float(told)  # type: ignore[arg-type]
            elif inner == 8 and isinstance(told, tuple):
                number_told = _only_number(data, *told)
        if name and number_told is not None:
            found.append((name, number_told))
    return found


def _only_number(data: bytes, at: int, end: int) -> Optional[float]:
    """The number of a tensor that holds one, as TensorFlow 2 and Keras write scalars."""
    kind, numbers, shaped = 1, [], False  # type: int, List[bytes], bool
    spelled = ""
    for number, wire, value in protobuf.fields(data, at, end):
        if number == 1 and wire == protobuf.VARINT:
            kind = int(value)  # type: ignore[arg-type]
        elif number == 2 and isinstance(value, tuple):
            shaped = any(inner == 2 for inner, _, _ in protobuf.fields(data, *value))
        elif number in _FLOATS and isinstance(value, float):
            return None if shaped else value
        elif number in (4, 5, 6) and isinstance(value, tuple):
            numbers.append(data[value[0] : value[1]])
            spelled = _FLOATS.get(number, "")
    spelled = spelled or _FORMATS.get(kind, "")
    if shaped or len(numbers) != 1 or not spelled or len(numbers[0]) != struct.calcsize(spelled):
        return None
    return float(struct.unpack(spelled, numbers[0])[0])


def _table() -> List[int]:
    """Of CRC-32C, whose polynomial is 0x82F63B78 with its bits turned round."""
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE: List[int] = []


def masked_crc(data: bytes) -> int:
    """CRC-32C, turned and shifted: as TFRecord files have it."""
    if not _TABLE:
        _TABLE.extend(_table())
    table, crc = _TABLE, _MASK
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= _MASK
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & _MASK
