"""A TOML file as it was written: its values, the line of each key, and mistakes in it."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from rabaska.domain.amounts import say_count
from rabaska.domain.toml_text import Path, Scan
from rabaska.errors import SettingsError

__all__ = ["Path", "key_lines"]


def key_lines(text: str) -> dict[Path, int]:
    """The line, from 1, of every key, table and list element of a valid TOML `text`."""
    return Scan(text).lines


@dataclass(frozen=True)
class Document:
    """`shown` is how messages name the file: short, since people know where they are."""

    shown: str
    values: dict[str, Any]
    lines: dict[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """The line of `path`, or of the nearest table around it that was written down."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


def read(file: File, shown: str) -> Document:
    """SettingsError, with the line where there is one, when `file` is not UTF-8 TOML."""
    try:
        raw = file.read_bytes()
    except OSError as problem:
        raise SettingsError(f"{shown} cannot be read", why=problem.strerror or "") from None
    return parse(_decoded(raw, shown), shown)


def parse(text: str, shown: str) -> Document:
    try:
        values = tomllib.loads(text)
        return Document(shown, values, key_lines(text))
    except tomllib.TOMLDecodeError as problem:
        raise _not_toml(str(problem), text, shown) from None
    except (ValueError, OverflowError) as problem:
        raise SettingsError(f"{shown} is not valid TOML", why=str(problem)) from None
    except RecursionError:
        raise SettingsError(f"{shown} is nested too deeply to be read") from None


def _decoded(raw: bytes, shown: str) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise SettingsError(
            f"{shown} is written in UTF-16", hint="save it again in your editor as UTF-8"
        )
    try:
        # Some editors on Windows put an invisible mark first; it changes nothing.
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise SettingsError(
            f"{shown}, line {line}, is not UTF-8",
            why=f"it has the byte 0x{raw[problem.start]:02x}",
            hint="save it again in your editor as UTF-8",
        ) from None


def _not_toml(complaint: str, text: str, shown: str) -> SettingsError:
    reason = re.sub(r" \(at [^()]*\)$", "", complaint)
    position = re.search(r"\(at line (\d+), column \d+\)$", complaint)
    line = int(position[1]) if position else text.count("\n") + 1
    twice = re.fullmatch(r"[Cc]annot declare \((.*?),?\) twice", reason)
    if twice:
        table = ".".join(re.findall(r"'([^']*)'", twice[1]))
        return SettingsError(
            f"{shown}, line {line}: the table [{table}] is there twice",
            why="a table may be there only once",
            hint=f"put its lines under the first [{table}], and delete this one",
        )
    if reason == "Cannot overwrite a value":
        return SettingsError(
            f"{shown}, line {line}: this key is there already",
            why="a key may be there only once in its table",
            hint="keep one of the two lines",
        )
    return SettingsError(
        f"{shown}, line {line}, is not valid TOML",
        why=reason[:1].lower() + reason[1:],
        hint='text goes in quotes: `name = "digits"`; tables in brackets: `[resources]`',
    )


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


def nearest(word: str, choices: Iterable[str]) -> str:
    """``did you mean `partition`?``, or nothing when no known word is close."""
    close = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else ""


def refusal(
    mistakes: Sequence[Mistake], document: Document, given: frozenset[Path] = frozenset()
) -> SettingsError:
    """All of `mistakes` as one error, in the order in which they stand in the file.

    `given` are the keys whose values came from the command line and have no line.
    """
    placed = sorted(
        ((document.line(mistake.path) or 0, mistake) for mistake in mistakes),
        key=lambda placed_mistake: placed_mistake[0],
    )
    if len(placed) == 1:
        line, mistake = placed[0]
        place = f"in {document.shown}, line {line}" if line else f"in {document.shown}"
        return SettingsError(mistake.said(COMMAND_LINE if _is_given(mistake, given) else place))
    sentences = []
    for line, mistake in placed:
        place = COMMAND_LINE if _is_given(mistake, given) else f"line {line}" if line else ""
        sentences.append(f"{place}: {mistake.said('')}" if place else mistake.said(""))
    return SettingsError(
        "\n  ".join([f"{document.shown} has {say_count(len(placed), 'mistake')}", *sentences])
    )


def _is_given(mistake: Mistake, given: frozenset[Path]) -> bool:
    return any(mistake.path[: len(path)] == path for path in given)
