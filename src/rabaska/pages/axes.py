"""Where the marks of an axis stand, and what is written at them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A range of numbers, laid out over a length."""

    low: float
    high: float
    length: float
    is_log: bool = False

    def place(self, value: float) -> float:
        low, high, value = self._shown(self.low), self._shown(self.high), self._shown(value)
        return (value - low) / (high - low) * self.length if high > low else self.length / 2

    def _shown(self, value: float) -> float:
        return math.log10(max(value, 5e-324)) if self.is_log else value

    def marks(self, most: int = 6) -> list[float]:
        return _log_marks(self.low, self.high) if self.is_log else _marks(self.low, self.high, most)


def axis_for(values: Iterable[float], length: float, *, may_be_log: bool = False) -> Axis:
    """Of all finite values; logarithmic where they span a factor of a thousand."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    is_log = may_be_log and low > 0 and high / low > 1000
    if low == high:
        low, high = low - abs(low) * 0.05 - 1e-9, high + abs(high) * 0.05 + 1e-9
    elif not is_log and may_be_log:
        margin = (high - low) * 0.04
        low, high = low - margin, high + margin
    return Axis(low, high, length, is_log)


def _marks(low: float, high: float, most: int) -> list[float]:
    """Round numbers: 1, 2 or 5 times a power of ten apart."""
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low]
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first = math.ceil(low / step)
    return [number * step for number in range(first, first + most + 2) if number * step <= high]


def _log_marks(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    every = max(1, (last - first) // 6)
    return [10.0**power for power in range(first, last + 1, every)] or [low, high]


_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def said(value: float) -> str:
    """`0.25`, `12k`, `1e-05`: as short as it can be read."""
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size < 1e-15:
        return "0"
    for factor, prefix in _PREFIXES:
        if size >= factor * 10 or (size >= factor and factor > 1e3):
            return f"{value / factor:.4g}{prefix}" if size < 1e16 else f"{value:.3g}"
    return f"{value:.5g}"
