"""The quickest way that is here: C where the library could be loaded, else Python."""

import zlib
from array import array
from functools import lru_cache
from typing import Any

from rabaska.node.native import compiled
from rabaska.packing import tar_batches
from rabaska.packing.name_columns import Names, leaf_of
from rabaska.packing.tar_batches import SMALL, Portion

_POLYNOMIAL = 0xEDB88320  # of crc32, lowest power first
_ONE = 1 << 31
_FEW = 4096  # zeros that are quicker summed than reckoned
_ZEROS = memoryview(bytes(_FEW))


def joined_crc(first: int, second: int, length: int) -> int:
    """The crc32 of two parts one after the other, of which the second has `length` bytes."""
    rest = _ZEROS[: length % _FEW]
    moved = zlib.crc32(rest, first) ^ zlib.crc32(rest)
    return (_product(_shift(length // _FEW), moved) if length >= _FEW else moved) ^ second


@lru_cache(maxsize=8192)
def _shift(count: int) -> int:
    """What a crc is multiplied by when so many times 4096 bytes follow: a power of x."""
    if count == 1:
        return _power_of_two(15)  # of their bits
    half = _shift(count // 2)
    even = _product(half, half)
    return _product(even, _shift(1)) if count % 2 else even


def _power_of_two(exponent: int) -> int:
    power = _ONE >> 1
    for _ in range(exponent):
        power = _product(power, power)
    return power


def _product(factor: int, other: int) -> int:
    """Of two polynomials over two elements, modulo that of crc32."""
    product = 0
    while factor:
        if factor & _ONE:
            product ^= other
        factor = factor << 1 & 0xFFFFFFFF
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return product


_ROOM = 2 * SMALL  # of one portion; what is read should still be in the cache when it is summed


def _take(names: list[bytes], flags: int) -> Portion:
    tar, used, facts, sums = compiled.take(names, flags, SMALL, _ROOM)
    return Portion(names[: len(sums)], memoryview(tar)[:used], facts, sums)


def _records(portion: Portion, labels: "array[int]", offset: int, names_at: int) -> bytes:
    lengths = array("I", map(len, portion.names))
    made: bytes = compiled.records(
        lengths, portion.facts, portion.crcs, labels, portion.header, offset, names_at
    )
    return made


def _leaf(path: bytes, prefix: bytes) -> Names | None:
    columns = compiled.leaf(path, prefix)
    return Names(*columns) if columns else None


class _Never(Exception):
    pass


leaf = _leaf if compiled else leaf_of
walk: Any = compiled.walk if compiled else None
stats: Any = compiled.stats if compiled else None
below: Any = compiled.below if compiled else None
CompiledNotPlain: Any = compiled.NotPlain if compiled else _Never
take = _take if compiled else tar_batches.take
records = _records if compiled else tar_batches.records
crc32 = compiled.crc32 if compiled else zlib.crc32
joined = compiled.joined_crc32 if compiled else joined_crc
