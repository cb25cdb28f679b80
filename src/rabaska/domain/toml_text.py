"""Where keys, values and comments stand in a TOML text: `tomllib` reads values but forgets that."""

import json
import re
import tomllib
from bisect import bisect_right

Path = tuple[str | int, ...]  # ("chain", "jobs"); a number is a place in a list
Span = tuple[int, int]

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_COMMENT = re.compile(r"#[^\n]*")
_SPACE = re.compile(r"[ \t]*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_PLAIN = re.compile(r"[^,\]}#\n]+")  # numbers, booleans and dates, which may hold a space


class Scan:
    """Walks a text that `tomllib` has accepted, so it need not look for mistakes."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.lines: dict[Path, int] = {}  # of each key, table and list element, from 1
        self.values: dict[Path, Span] = {}  # where each text, number, … stands in `self.text`
        self.comments: list[Span] = []
        self._breaks = [match.start() for match in re.finditer("\n", self.text)]
        self._tables_in: dict[Path, int] = {}  # how many [[tables]] each list holds so far
        self._document()

    def _document(self) -> None:
        table: Path = ()
        self._blank()
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._blank()

    def _header(self) -> Path:
        line = self._line()
        several = self.text.startswith("[[", self.at)
        self.at += 2 if several else 1
        keys = self._keys()
        self.at += 2 if several else 1
        table: Path = ()
        for position, key in enumerate(keys, 1):
            table = self._note((*table, key), line)
            if several and position == len(keys):
                self._tables_in[table] = self._tables_in.get(table, 0) + 1
            if table in self._tables_in:
                table = self._note((*table, self._tables_in[table] - 1), line)
        return table

    def _pair(self, table: Path) -> None:
        line = self._line()
        for key in self._keys():
            table = self._note((*table, key), line)
        self.at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(table)

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self._skip(_SPACE)
            keys.append(_plain_key(self._skip(_KEY)))
            self._skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return keys
            self.at += 1

    def _value(self, path: Path) -> None:
        opening = self.text[self.at]
        if opening == "[":
            self._elements(path)
        elif opening == "{":
            self._inline_table(path)
        else:
            start = self.at
            written = self._skip(_STRING if opening in "\"'" else _PLAIN)
            self.values[path] = (start, start + len(written.rstrip()))

    def _elements(self, path: Path) -> None:
        self.at += 1
        number = 0
        while self._next_inside("]"):
            element = self._note((*path, number), self._line())
            self._value(element)
            number += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while self._next_inside("}"):
            self._pair(path)

    def _next_inside(self, closing: str) -> bool:
        """Step over blanks and a comma; False, past `closing`, when nothing more is inside."""
        self._blank()
        if self.text[self.at] == ",":
            self.at += 1
            self._blank()
        if self.text[self.at] == closing:
            self.at += 1
            return False
        return True

    def _blank(self) -> None:
        start = self.at
        self.comments += [
            (start + match.start(), start + match.end())
            for match in _COMMENT.finditer(self._skip(_BLANK))
        ]

    def _note(self, path: Path, line: int) -> Path:
        self.lines.setdefault(path, line)
        return path

    def _line(self) -> int:
        return bisect_right(self._breaks, self.at - 1) + 1

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError(f"line {self._line()} is not what tomllib accepts")
        self.at = match.end()
        return match[0]


def _plain_key(spelled: str) -> str:
    if spelled[0] in "\"'":
        return next(iter(tomllib.loads(f"{spelled} = 0")))
    return spelled


def quoted(value: str) -> str:
    """A TOML string; JSON spells its escapes the same way, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
