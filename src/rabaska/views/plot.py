"""A curve drawn with letters: braille dots, eight to a letter, or plain ASCII."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rabaska.views.words import counted

_BRAILLE = 0x2800
# The bits of the dots of a braille letter, by row and column.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_ACROSS, _DOWN = 2, 4  # dots of a letter
_BARS = "▁▂▃▄▅▆▇█"
_NARROWEST = 8  # columns of a curve that is worth labels


Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Look:
    """How a curve is drawn."""

    log: bool = False  # a logarithmic scale of values
    ascii: bool = False  # for terminals that know no braille


def plot(
    xs: Sequence[float],
    ys: Sequence[float],
    *,
    width: int,
    height: int,
    look: Look | None = None,
    unit: str = "step",
) -> list[str]:
    """`height` lines: the curve, its highest and lowest value at the left, where it begins and
    ends below. What is no finite number leaves a gap, and is counted."""
    look = look or Look()
    if width < 1 or height < 1:
        return []
    points = [(x, y) for x, y in zip(xs, ys, strict=False) if _can_be_drawn(x, y, log=look.log)]
    if not points:
        return [_cut("no numbers yet", width)]
    low, high = (limit(y for _, y in points) for limit in (min, max))
    labels = [number(high), number(low)]
    margin = max(map(len, labels)) + 1
    has_labels = width - margin >= _NARROWEST
    margin = margin if has_labels else 0
    rows = max(1, height - 1)
    grid = _grid([points], width - margin, rows, log=look.log)
    drawn = ["".join(letter(dots, look) for dots in line) for line in grid]
    lines = []
    for place, line in enumerate(drawn):
        label = labels[0] if place == 0 else labels[1] if place == rows - 1 else ""
        lines.append(f"{label:>{margin - 1}} {line}" if has_labels else line)
    if height > 1:
        lines.append(_below(points, len(ys) - len(points), width, margin, unit))
    return lines


def spark(values: Sequence[float], width: int, *, full: float | None = None) -> str:
    """The course of some numbers in one line of blocks; from 0 to `full`, if that is known."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite or width < 1:
        return ""
    low, high = (min(finite), max(finite)) if full is None else (0.0, full)
    span = (high - low) or 1.0
    chosen = [finite[min(len(finite) - 1, at * len(finite) // width)] for at in range(width)]
    chosen = finite if len(finite) <= width else chosen
    return "".join(_BARS[min(7, max(0, int((value - low) / span * 8)))] for value in chosen)


def bar(share: float, width: int, *, plain: bool = False) -> str:
    """A share of 1 as a bar; nan is empty."""
    full, empty = ("#", ".") if plain else ("█", "░")
    share = min(1.0, max(0.0, share)) if math.isfinite(share) else 0.0
    filled = round(share * max(0, width))
    return full * filled + empty * (max(0, width) - filled)


def number(value: float) -> str:
    """A value of an axis, in few letters: `0.234`, `1.2e-05`, `12.3k`."""
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if limit <= size < 1e12:
            base = limit if letter != "k" else 1e3
            return f"{value / base:.4g}{letter}"
    return f"{value:.4g}"


def _can_be_drawn(x: float, y: float, *, log: bool) -> bool:
    return math.isfinite(x) and math.isfinite(y) and (y > 0 or not log)


def dots(
    groups: Sequence[Sequence[Points]], width: int, height: int, *, joined: bool = True
) -> list[list[list[int]]]:
    """Rows of letters for each group of curves, on one scale for all: bits for `letter`."""
    everything = [point for group in groups for curve in group for point in curve]
    if not everything or width < 1 or height < 1:
        return [[[0] * max(0, width) for _ in range(max(0, height))] for _ in groups]
    return [
        _grid([curve for curve in group if curve], width, height, among=everything, joined=joined)
        for group in groups
    ]


def letter(bits: int, look: Look) -> str:
    return _ascii(bits) if look.ascii else _letter(bits)


def _grid(
    curves: Sequence[Points],
    width: int,
    height: int,
    *,
    log: bool = False,
    among: Points = (),
    joined: bool = True,
) -> list[list[int]]:
    columns, rows = max(1, width) * _ACROSS, height * _DOWN
    grid = [[0] * max(1, width) for _ in range(height)]
    box = _box(among, log=log) if among else None
    for points in curves:
        places = list(_places(points, columns, rows, box or _box(points, log=log), log=log))
        last = places[0]
        for place in places:
            for column, row in _line(last if joined else place, place):
                grid[row // _DOWN][column // _ACROSS] |= _DOTS[row % _DOWN][column % _ACROSS]
            last = place
    return grid


def _box(points: Points, *, log: bool) -> tuple[float, float, float, float]:
    """Left, right, lowest and highest of them."""
    values = [math.log10(y) if log else y for _, y in points]
    left, right = points[0][0], points[0][0]
    for x, _ in points:
        left, right = min(left, x), max(right, x)
    return left, right, min(values), max(values)


def _places(
    points: Points, columns: int, rows: int, box: tuple[float, float, float, float], *, log: bool
) -> Iterator[tuple[int, int]]:
    """Their dots, on a scale that holds the box."""
    values = [math.log10(y) if log else y for _, y in points]
    left, right, low, high = box
    across, down = (right - left) or 1.0, (high - low) or 1.0
    for (x, _), value in zip(points, values, strict=True):
        # Halves first: the distance of two very large numbers may be none.
        up = 0.5 if high == low else value / down - low / down
        along = x / across - left / across if right > left else 0.0
        column = min(columns - 1, max(0, int(along * (columns - 1) + 0.5)))
        yield column, rows - 1 - min(rows - 1, max(0, int(up * (rows - 1) + 0.5)))


def _line(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    for step in range(steps + 1):
        yield tuple(  # type: ignore[misc]
            one + round((other - one) * step / steps) for one, other in zip(start, end, strict=True)
        )


def _letter(dots: int) -> str:
    return chr(_BRAILLE + dots) if dots else " "


def _ascii(dots: int) -> str:
    upper, lower = dots & 0x1B, dots & 0xE4
    return ":" if upper and lower else "'" if upper else "." if lower else " "


def _below(
    points: Sequence[tuple[float, float]], left_out: int, width: int, margin: int, unit: str
) -> str:
    first, last = number(points[0][0]), f"{unit} {number(points[-1][0])}"
    aside = f"{counted(left_out, 'point')} not drawn" if left_out else ""
    room = width - margin - len(first) - len(last)
    middle = aside.center(room) if len(aside) <= room - 2 else " " * max(1, room)
    return _cut(" " * margin + first + middle + last, width)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[:width]
