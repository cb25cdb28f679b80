"""Plain text in columns and colours. `status` is asked often, and rich takes long to import."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_CODES = {
    "bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35,
    "cyan": 36,
}  # fmt: skip


@dataclass(frozen=True)
class Painted:
    """A cell with a colour: its width is that of the text alone."""

    text: str
    colour: str

    def __str__(self) -> str:
        return self.text


def painted(text: str, colour: str, *, colours: bool) -> str:
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if colours and colour else text


def columns(
    rows: Iterable[Sequence[object]],
    headings: Sequence[str],
    *,
    right: Sequence[str] = (),
    colours: bool = False,
) -> list[str]:
    """One line for the headings and one for each row, cells aligned below one another."""
    cells = [[Painted(heading, "dim") for heading in headings], *rows]
    widths = [max(_width(str(row[place])) for row in cells) for place in range(len(headings))]
    sides = [heading in right for heading in headings]
    return [_line(row, widths, sides, colours=colours) for row in cells]


def _line(
    row: Sequence[object], widths: Sequence[int], sides: Sequence[bool], *, colours: bool
) -> str:
    parts = []
    for cell, width, right in zip(row, widths, sides, strict=True):
        text = str(cell)
        gap = " " * (width - _width(text))
        shown = painted(text, cell.colour, colours=colours) if isinstance(cell, Painted) else text
        parts.append(gap + shown if right else shown + gap)
    return "  ".join(parts).rstrip()


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
