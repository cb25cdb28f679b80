"""A TOML file as it was written: its values, and the line of each of its keys."""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from rabaska.errors import SettingsError
from rabaska.settings.lines import Path, key_lines


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
            why=f"it holds the byte 0x{raw[problem.start]:02x}",
            hint="save it again in your editor as UTF-8",
        ) from None


def _not_toml(complaint: str, text: str, shown: str) -> SettingsError:
    reason = re.sub(r" \(at [^()]*\)$", "", complaint)
    found = re.search(r"\(at line (\d+), column \d+\)$", complaint)
    line = int(found[1]) if found else text.count("\n") + 1
    return SettingsError(
        f"{shown}, line {line}, is not valid TOML",
        why=reason[:1].lower() + reason[1:],
        hint='text stands in quotes: `name = "digits"`; tables in brackets: `[resources]`',
    )
