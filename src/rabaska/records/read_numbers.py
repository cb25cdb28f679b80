"""What was read of a file of numbers, kept so that it need not be read again.

A million points take a second to read as text, and a hundredth of one as they are in memory. A
file of ours is a line of JSON, then the numbers themselves. It is only a copy: one that is damaged,
or of another file, is not used.
"""

import json
import os
import sys
import zlib
from array import array
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from rabaska.domain.curves import Curve
from rabaska.node import files

WORTH = 4_000_000  # bytes of text that are read quicker from a copy
_FORMAT = [1, sys.byteorder]
_EDGE = 4096  # bytes at both ends of what was read, by which the file is known again


@dataclass(frozen=True)
class ReadNumbers:
    """As far as a file was read."""

    offset: int
    began: float
    curves: dict[str, Curve]
    by_number: dict[bytes, Curve]


def keep(copy: str, source: str, read: ReadNumbers) -> None:
    """A disk that is full, or a folder that cannot be written, costs time and nothing else."""
    curves = list(read.curves.values())
    head = {
        "format": _FORMAT,
        "mark": _mark(source, read.offset),
        "offset": read.offset,
        "began": read.began,
        "curves": [[one.name, one.source, len(one.steps), len(one.values)] for one in curves],
        "numbers": [[number.decode(), one.name] for number, one in read.by_number.items()],
    }
    partial = files.partial_name(copy)
    try:
        os.makedirs(os.path.dirname(copy), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
        with files.create(partial) as stream:
            stream.write(json.dumps(head).encode() + b"\n")
            for one in curves:
                for numbers in (one.steps, one.times, one.values):
                    stream.write(memoryview(numbers))
        os.replace(partial, copy)  # noqa: PTH105
    except OSError:
        with suppress(OSError):
            files.remove_if_there(partial)


def kept(copy: str, source: str) -> ReadNumbers | None:
    """What `keep` wrote of this very file; None where there is none."""
    with suppress(OSError, ValueError, KeyError, TypeError, EOFError):
        with open(copy, "rb") as stream:  # noqa: PTH123
            head = json.loads(stream.readline())
            if head["format"] != _FORMAT or head["mark"] != _mark(source, head["offset"]):
                return None
            curves = {line[0]: _curve(stream, line) for line in head["curves"]}
        return ReadNumbers(head["offset"], head["began"], curves, _by_number(head, curves))
    return None


def _curve(stream: "object", line: list[object]) -> Curve:
    name, source, steps, others = line
    parts = []
    for length in (steps, others, others):
        numbers = array("d")
        numbers.fromfile(stream, length)  # type: ignore[arg-type]
        parts.append(numbers)
    return Curve(str(name), str(source), *parts)


def _by_number(
    head: Mapping[str, list[list[str]]], curves: Mapping[str, Curve]
) -> dict[bytes, Curve]:
    return {number.encode(): curves[name] for number, name in head["numbers"]}


def _mark(source: str, offset: int) -> int:
    """Of the beginning and the end of what was read: the file only grows after it."""
    with open(source, "rb") as stream:  # noqa: PTH123
        mark = zlib.crc32(stream.read(min(_EDGE, offset)))
        stream.seek(max(0, offset - _EDGE))
        return zlib.crc32(stream.read(min(_EDGE, offset)), mark)
