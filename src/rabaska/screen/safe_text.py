"""What programs and clusters wrote, made fit for the screen: shown, never interpreted.

Textual reads `[bold]` in a plain string as markup, and passes escape codes on to the terminal. So
every text that is not our own becomes a `Text` here, which has no markup, without codes and with
control characters replaced.
"""

import re
from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

TONES = {
    "good": Style(color="green"),
    "active": Style(color="cyan"),
    "waiting": Style(color="blue"),
    "caution": Style(color="yellow"),
    "bad": Style(color="red", bold=True),
    "unclear": Style(color="magenta"),
    "dim": Style(dim=True),
    "strong": Style(bold=True),
    "": Style(),
}
# Colours and the like, which programs print for terminals: CSI, OSC up to its end, other escapes.
_CODES = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?|\x1b[@-Z\\\\-~]"
)
# C0, C1, halves of surrogate pairs, and marks that turn or hide what is written.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)


def harmless(text: str) -> str:
    """One line without codes; every other control character is shown as �."""
    plain = _CODES.sub("", text).replace("\t", "    ")
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", plain)


def log_lines(text: str, most: int = 0) -> list[str]:
    """Lines of a log, each as a terminal would show it last; only the last `most`, if given."""
    lines = text.split("\n")
    lines = lines[:-1] if lines and not lines[-1] else lines
    lines = lines[-most:] if most else lines
    return [harmless(line.rstrip("\r").rpartition("\r")[2]) for line in lines]


def painted(text: str, tone: str = "") -> Text:
    return Text(harmless(text), style=TONES[tone], no_wrap=True, overflow="crop", end="")


def cut(text: str, width: int) -> str:
    """At most so many columns of a text, which letters of two columns fill sooner."""
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width))


def line(width: int, parts: Iterable[tuple[str, str]]) -> Text:
    """Parts, each with its tone, in a line of at most so many columns."""
    whole = Text(no_wrap=True, overflow="crop", end="")
    for text, tone in parts:
        room = width - whole.cell_len
        if room > 0:
            whole.append(cut(harmless(text), room), TONES[tone])
    return whole
