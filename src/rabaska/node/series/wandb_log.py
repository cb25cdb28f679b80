"""Metrics of Weights & Biases' own log, `run-….wandb`, which it writes online and offline.

After seven bytes of its own it is a log of LevelDB: blocks of 32 kB, in which a record is one or
several fragments of a CRC, a length and a kind. Each is a message in which `history` is field 2.
"""

import json
import struct
from typing import Any, List, Optional, Tuple

from . import protobuf
from .sources import Point, Source

_BLOCK = 32768
_BEGINNING = b":W&B"
_OWN = 7  # bytes before the first record
_FRAGMENT = struct.Struct("<IHB")  # CRC, length, kind
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


class WandbLog(Source):
    kind = "wandb"

    def points(self, data: bytes) -> List[Point]:
        found: List[Point] = []
        at = 0
        if self.offset == 0:
            if not data.startswith(_BEGINNING):
                return []
            at = _OWN
        while True:
            record, behind = self._record(data, at)
            if record is None:
                break
            at = behind
            found += _history(record)
        self.offset += at
        return found

    def _record(self, data: bytes, at: int) -> Tuple[Optional[bytes], int]:
        """The next record and where it ends; None where it is not complete yet."""
        pieces: List[bytes] = []
        while True:
            left = _BLOCK - (self.offset + at) % _BLOCK
            if left < _FRAGMENT.size:
                at += left
                continue
            if at + _FRAGMENT.size > len(data):
                return None, at
            _, length, kind = _FRAGMENT.unpack_from(data, at)
            start = at + _FRAGMENT.size
            if kind not in (_FULL, _FIRST, _MIDDLE, _LAST) or length > left - _FRAGMENT.size:
                at += left  # damaged: the next block begins anew
                pieces = []
                if at >= len(data):
                    return None, at
                continue
            if start + length > len(data):
                return None, at
            pieces.append(data[start : start + length])
            at = start + length
            if kind in (_FULL, _LAST):
                return b"".join(pieces), at


def _history(record: bytes) -> List[Point]:
    try:
        for number, _, value in protobuf.fields(record, 0, len(record)):
            if number == 2 and isinstance(value, tuple):
                return _points(record, *value)
    except (protobuf.Damaged, ValueError, IndexError, OverflowError):
        pass
    return []


def _points(data: bytes, at: int, end: int) -> List[Point]:
    step: Optional[int] = None
    moment: Optional[float] = None
    found: List[Tuple[str, float]] = []
    for number, _, value in protobuf.fields(data, at, end):
        if number == 2 and isinstance(value, tuple):
            step = _step(data, *value)
        elif number == 1 and isinstance(value, tuple):
            name, told = _item(data, *value)
            if name == "_timestamp":
                moment = told
            elif name == "_step" and told is not None and step is None:
                step = int(told)
            elif told is not None and not name.startswith("_"):
                found.append((name, told))
    return [Point(name, step, moment, told) for name, told in found]


def _step(data: bytes, at: int, end: int) -> int:
    told = [value for number, _, value in protobuf.fields(data, at, end) if number == 1]
    return protobuf.signed(told[0]) if told and isinstance(told[0], int) else 0


def _item(data: bytes, at: int, end: int) -> Tuple[str, Optional[float]]:
    names: List[str] = []
    told: Optional[float] = None
    for number, wire, value in protobuf.fields(data, at, end):
        if number in (1, 2) and isinstance(value, tuple):
            names.append(data[value[0] : value[1]].decode("utf-8", "replace"))
        elif number == 5 and isinstance(value, int):
            told = float(protobuf.signed(value))
        elif number == 6 and wire == protobuf.DOUBLE:
            told = float(value)  # type: ignore[arg-type]
        elif number == 16 and isinstance(value, tuple):
            told = _number(data[value[0] : value[1]])
    return "/".join(names), told


def _number(text: bytes) -> Optional[float]:
    """Of JSON, in which Python also writes NaN and Infinity; older versions put them in quotes."""
    try:
        value: Any = json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)
