"""Plain text: columns, colours, control characters made harmless, and JSON values."""

import codecs
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any

_CODES = {
    "bold": 1,
    "dim": 2,
    "red": 31,
    "green": 32,
    "yellow": 33,
    "blue": 34,
    "magenta": 35,
    "cyan": 36,
}


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


# Colours as `painted` makes them, and what may follow one another in a text. Everything
# else that a terminal could take for a command: C0, C1, half of a surrogate pair (which cannot be
# printed), and marks that turn the direction of writing.
_OWN_COLOUR = r"\x1b\[(?:0|1|2|3[1-6])m"
_COMMANDS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
_IN_TEXT = re.compile(f"({_OWN_COLOUR})|{_COMMANDS}")

# A log may have any colour, and lines that are written again after a carriage return.
_IN_LOG = re.compile(rf"(\x1b\[[0-9;:]*m|\r)|\x1b\[[0-?]*[ -/]*[@-~]|({_COMMANDS})")
_BEGUN = re.compile(r"\x1b(\[[0-?]{0,64}[ -/]{0,8})?\Z")  # the rest may come with the next bytes


def harmless(text: str) -> str:
    """The text with each control character replaced, but for our own colours."""
    return _IN_TEXT.sub(lambda match: match[1] or "\N{REPLACEMENT CHARACTER}", text)


class HarmlessLog:
    """A log as it comes, for a terminal: colours and carriage returns pass, nothing else does."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = ""

    def __call__(self, chunk: bytes) -> bytes:
        text = self._begun + self._decoder.decode(chunk)
        begun = _BEGUN.search(text)
        self._begun = begun[0] if begun else ""
        ready = text[: len(text) - len(self._begun)]
        shown = _IN_LOG.sub(
            lambda match: match[1] or ("\N{REPLACEMENT CHARACTER}" if match[2] else ""), ready
        )
        return shown.encode()


def plain(value: Any) -> Any:
    """Records become objects, durations seconds, states their words, paths text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: plain(getattr(value, field.name)) for field in fields}
    if _is_secret(value):
        return list(value.names)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value


def _is_secret(value: object) -> bool:
    from rabaska.domain.secrets import Secrets  # reads TOML, which `status` has no time for

    return isinstance(value, Secrets)
