"""Points of a Sobol sequence, shifted by a seed: they fill a space more evenly than random ones.

Direction numbers: S. Joe and F. Y. Kuo, new-joe-kuo-6 (2008), the first 21 dimensions.
"""

import random
from typing import List

BITS = 30
# s, a, m_1 … m_s of each dimension from the second on
_NUMBERS = (
    (1, 0, (1,)),
    (2, 1, (1, 3)),
    (3, 1, (1, 3, 1)),
    (3, 2, (1, 1, 1)),
    (4, 1, (1, 1, 3, 3)),
    (4, 4, (1, 3, 5, 13)),
    (5, 2, (1, 1, 5, 5, 17)),
    (5, 4, (1, 1, 5, 5, 5)),
    (5, 7, (1, 1, 7, 11, 19)),
    (5, 11, (1, 1, 5, 1, 1)),
    (5, 13, (1, 1, 1, 3, 11)),
    (5, 14, (1, 3, 5, 5, 31)),
    (6, 1, (1, 3, 3, 9, 7, 49)),
    (6, 13, (1, 1, 1, 15, 21, 21)),
    (6, 16, (1, 3, 1, 13, 27, 49)),
    (6, 19, (1, 1, 1, 15, 7, 5)),
    (6, 22, (1, 3, 1, 15, 13, 25)),
    (6, 25, (1, 1, 5, 5, 19, 61)),
    (7, 1, (1, 3, 7, 11, 23, 15, 103)),
    (7, 4, (1, 3, 7, 13, 13, 15, 69)),
)
DIMENSIONS = len(_NUMBERS) + 1


def point(number: int, dimensions: int, seed: int) -> List[float]:
    """Point `number`, from 1 on; ValueError for more dimensions than there are numbers for."""
    if dimensions > DIMENSIONS:
        raise ValueError("sobol knows {} dimensions at most".format(DIMENSIONS))
    gray = number ^ (number >> 1)
    shifts = random.Random("sobol/{}".format(seed))
    found = []
    for dimension in range(dimensions):
        value = 0
        for bit, direction in enumerate(_directions(dimension)):
            if gray >> bit & 1:
                value ^= direction
        found.append((value ^ shifts.getrandbits(BITS)) / 2.0**BITS)
    return found


def _directions(dimension: int) -> List[int]:
    if dimension == 0:
        return [1 << (BITS - 1 - bit) for bit in range(BITS)]
    degree, polynomial, numbers = _NUMBERS[dimension - 1]
    found = [number << (BITS - 1 - bit) for bit, number in enumerate(numbers)]
    for bit in range(degree, BITS):
        value = found[bit - degree] ^ (found[bit - degree] >> degree)
        for place in range(1, degree):
            if polynomial >> (degree - 1 - place) & 1:
                value ^= found[bit - place]
        found.append(value)
    return found
