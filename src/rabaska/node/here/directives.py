"""The `#HERE` lines at the top of a job script: what a job asks of this computer."""

import difflib
import shlex
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Tuple

PREFIX = "#HERE"


class Refused(Exception):
    """What was asked cannot be done; the message says why in plain words."""


class Requested(NamedTuple):
    name: str = "job"
    time: float = 0.0  # seconds one element may take; 0: as long as it likes
    elements: int = 1  # elements that run one after another
    gpus: int = 0  # for each element
    grace: float = 10.0  # seconds between TERM and KILL
    output: str = ""  # where standard output goes; %j is the element's id, %% a percent sign


def read(script: str) -> Requested:
    """What the first comment lines of `script` ask for; Refused for an option nobody knows."""
    asked = Requested()
    for number, words in _directives(script.split("\n")):
        for word in words:
            asked = asked._replace(**_option(word, number))
    return asked


def output_path(pattern: str, element: str) -> str:
    return "%".join(part.replace("%j", element) for part in pattern.split("%%"))


def _directives(lines: Iterable[str]) -> Iterator[Tuple[int, List[str]]]:
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            return  # below the first command, a comment is only a comment
        if line.split(None, 1)[:1] == [PREFIX]:
            try:
                yield number, shlex.split(line[len(PREFIX) :])
            except ValueError as problem:
                raise Refused("line {} of the script: {}".format(number, problem))


def _option(word: str, line: int) -> Dict[str, Any]:
    name, equals, text = word.partition("=")
    key = name[2:]
    if not name.startswith("--") or not equals or key not in _READERS:
        raise Refused("line {} of the script: {}".format(line, _unknown(word, key)))
    try:
        return {key: _READERS[key](text)}
    except ValueError:
        raise Refused("line {} of the script: {} cannot be {!r}".format(line, name, text))


def _unknown(word: str, key: str) -> str:
    near = difflib.get_close_matches(key, _READERS, n=1)
    hint = "; did you mean --{}=?".format(near[0]) if near else ""
    return "{!r} is not an option of {}{}".format(word, PREFIX, hint)


def _number(least: int) -> Callable[[str], int]:
    def read_number(text: str) -> int:
        value = int(text)
        if value < least:
            raise ValueError(text)
        return value

    return read_number


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def _text(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError(text)
    return text


_READERS: Dict[str, Callable[[str], Any]] = {
    "name": _text,
    "time": _seconds,
    "elements": _number(1),
    "gpus": _number(0),
    "grace": _seconds,
    "output": _text,
}
