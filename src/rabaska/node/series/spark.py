"""A few values that show the course of a long series."""

import math
from typing import List, Optional

POINTS = 40


class Spark:
    """Averages of stretches of equal length; when there are too many, two become one."""

    def __init__(self) -> None:
        self._means: List[float] = []
        self._sum, self._count, self._each = 0.0, 0, 1

    def add(self, value: float) -> None:
        self._sum += value
        self._count += 1
        if self._count == self._each:
            self._means.append(self._sum / self._count)
            self._sum, self._count = 0.0, 0
            if len(self._means) == 2 * POINTS:
                pairs = zip(self._means[::2], self._means[1::2])
                self._means = [(one + other) / 2 for one, other in pairs]
                self._each *= 2

    def values(self) -> List[Optional[float]]:
        """None for what is no finite number, which JSON does not know."""
        means = self._means + ([self._sum / self._count] if self._count else [])
        return [float("{:.5g}".format(one)) if math.isfinite(one) else None for one in means]
