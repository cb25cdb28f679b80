"""The quickest way that is here: C where the package `rabaska-speed` is installed, else Python."""

import zlib
from array import array
from typing import Any

from rabaska.node.data.packs import FORMAT
from rabaska.packing import crc, taking
from rabaska.packing.names import Names, leaf_of
from rabaska.packing.taking import SMALL, Portion

try:
    import rabaska_speed
except ImportError:  # it is optional: only speed is lost
    rabaska_speed = None
if getattr(rabaska_speed, "FORMAT", None) != FORMAT:
    rabaska_speed = None  # installed with another rabaska, it would make other packs

_ROOM = 2 * SMALL  # of one portion; what is read should still be in the cache when it is summed


def _take(names: list[bytes], flags: int) -> Portion:
    tar, used, facts, crcs = rabaska_speed.take(names, flags, SMALL, _ROOM)
    sums = array("I", crcs)
    return Portion(names[: len(sums)], memoryview(tar)[:used], array("q", facts), sums)


def _records(portion: Portion, labels: "array[int]", offset: int, names_at: int) -> bytes:
    lengths = array("I", map(len, portion.names))
    made: bytes = rabaska_speed.records(
        lengths, portion.facts, portion.crcs, labels, portion.header, offset, names_at
    )
    return made


def _leaf(path: bytes, prefix: bytes) -> Names | None:
    found = rabaska_speed.leaf(path, prefix)
    return Names(found[0], array("I", found[1]), array("I", found[2])) if found else None


leaf = _leaf if hasattr(rabaska_speed, "leaf") else leaf_of
take = _take if rabaska_speed else taking.take
records = _records if rabaska_speed else taking.records
crc32 = rabaska_speed.crc32 if rabaska_speed else zlib.crc32
digest: Any = getattr(rabaska_speed, "digest", None)  # the processor may not have what it takes
joined = rabaska_speed.joined if rabaska_speed else crc.joined
