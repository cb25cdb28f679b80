"""crc32 of a whole from those of its parts, so that no byte is summed twice."""

from functools import lru_cache
from zlib import crc32

_POLYNOMIAL = 0xEDB88320  # of crc32, lowest power first
_ONE = 1 << 31
_FEW = 4096  # zeros that are quicker summed than reckoned
_ZEROS = memoryview(bytes(_FEW))


def joined(first: int, second: int, length: int) -> int:
    """The crc32 of two parts one after the other, of which the second has `length` bytes."""
    rest = _ZEROS[: length % _FEW]
    moved = crc32(rest, first) ^ crc32(rest)
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


def _product(one: int, other: int) -> int:
    """Of two polynomials over two elements, modulo that of crc32."""
    product = 0
    while one:
        if one & _ONE:
            product ^= other
        one = one << 1 & 0xFFFFFFFF
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return product
