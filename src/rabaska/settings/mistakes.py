"""Mistakes in a settings file: what is wrong, on which line, and the nearest right word."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rabaska.errors import SettingsError
from rabaska.settings.document import Document
from rabaska.settings.lines import Path

COMMAND_LINE = "on the command line"


@dataclass(frozen=True)
class Mistake:
    """`path` is the key to blame; `advice` is what to write instead, where that is known."""

    path: Path
    what: str
    advice: str = ""

    def said(self, place: str) -> str:
        end = f"; {self.advice}" if self.advice else ""
        return f"{self.what} {place}{end}" if place else f"{self.what}{end}"


def nearest(word: str, known: Iterable[str]) -> str:
    """``did you mean `partition`?``, or nothing when no known word is close."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else ""


def refusal(
    mistakes: Sequence[Mistake], document: Document, given: frozenset[Path] = frozenset()
) -> SettingsError:
    """All of `mistakes` as one error, in the order in which they stand in the file.

    `given` are the keys whose values came from the command line and have no line.
    """
    placed = sorted(
        ((document.line(mistake.path) or 0, mistake) for mistake in mistakes),
        key=lambda each: each[0],
    )
    if len(placed) == 1:
        line, mistake = placed[0]
        place = f"in {document.shown}, line {line}" if line else f"in {document.shown}"
        return SettingsError(mistake.said(COMMAND_LINE if _is_given(mistake, given) else place))
    sentences = []
    for line, mistake in placed:
        place = COMMAND_LINE if _is_given(mistake, given) else f"line {line}" if line else ""
        sentences.append(f"{place}: {mistake.said('')}" if place else mistake.said(""))
    return SettingsError("\n  ".join([f"{document.shown} has {len(placed)} mistakes", *sentences]))


def _is_given(mistake: Mistake, given: frozenset[Path]) -> bool:
    return any(mistake.path[: len(path)] == path for path in given)
