"""What may stand after the `=`: durations, sizes, words, names, each with its own complaint."""

import re
import shlex
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from rabaska.domain import amounts
from rabaska.node import environment_variables

Names = TypeVar("Names", dict[str, str], list[str])

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_LONGEST_WALLTIME = timedelta(days=366)
_LONGEST = environment_variables.LONGEST - 128  # bytes of a variable, its name left out


def _duration(value: object) -> timedelta:
    if not isinstance(value, str):
        raise ValueError('it must be a duration in quotes, such as "3h" or "90s"')
    span = amounts.duration(value)
    if span <= timedelta(0):
        raise ValueError("it must be longer than zero")
    if span > _LONGEST_WALLTIME:
        raise ValueError("no job lasts that long")
    return span


def _size(value: object) -> int:
    if not isinstance(value, str):
        raise ValueError('it must be a size in quotes, such as "16 GB"')
    size = amounts.size(value)
    # A bare "16" is read as 16 bytes, and nobody means that.
    if size < 10**6:
        raise ValueError(f"that is {amounts.say_size(size)}; add a unit, such as GB")
    return size


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError as problem:
            raise ValueError(f"a shell could not read it: {str(problem).lower()}") from None
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ValueError("it must be text in quotes, or a list of words in quotes")
    if any("\0" in word for word in value):
        raise ValueError("it has a NUL character, which a command line cannot contain")
    return value


def _command(value: list[str]) -> list[str]:
    if not any(word.strip() for word in value):
        raise ValueError('it is empty; write how you train, such as "python train.py"')
    return value


def _line(value: str) -> str:
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
        raise ValueError("it must be a single line without control characters")
    return value


def _name(value: str) -> str:
    if not re.fullmatch(NAME, value) or len(value) > 60:
        raise ValueError(
            "it becomes a file name on every cluster: at most 60 letters, digits, "
            "dots, dashes and underscores"
        )
    return value


def _inside(value: str) -> str:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError("it must be a path inside the project folder")
    return value


def _signal(value: object) -> object:
    return value.upper().removeprefix("SIG") if isinstance(value, str) else value


def _text_of_number(value: object) -> object:
    # OMP_NUM_THREADS = 4 means what it says; true and 0.5 have several spellings as text.
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _progress(value: str) -> str:
    try:
        pattern = re.compile(value)
    except (re.error, OverflowError, RecursionError) as problem:
        raise ValueError(f"it is not a regular expression: {problem}") from None
    # The groups that `node.progress` looks at: `step` or `epoch`, else the first.
    named = set(pattern.groupindex)
    if value and not (named & {"step", "epoch"} or (pattern.groups and not named)):
        raise ValueError(r"it must name the number it finds, as in (?P<step>\d+)")
    return value


def _short_enough(value: str) -> str:
    """With such a variable, no program can be started."""
    if len(value.encode()) > _LONGEST:
        raise ValueError(
            f"it has {len(value.encode()):,} bytes, and systems allow {_LONGEST:,}; "
            "keep it in a file, and give the file's name"
        )
    return value


def variable_names(value: Names) -> Names:
    for name in value:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"{name!r} cannot be the name of an environment variable")
    return value


Line = Annotated[str, AfterValidator(_line)]
Trimmed = Annotated[Line, AfterValidator(str.strip)]  # where only spaces mean nothing
Name = Annotated[
    str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^{NAME}$"})
]
PathInside = Annotated[str, AfterValidator(_line), AfterValidator(_inside)]
Pattern = Annotated[str, AfterValidator(_line), AfterValidator(_progress)]
SignalName = BeforeValidator(_signal)
Variable = Annotated[
    str,
    BeforeValidator(_text_of_number),
    AfterValidator(_line),
    AfterValidator(_short_enough),
    WithJsonSchema({"type": ["string", "integer"]}),
]
Variables = Annotated[dict[str, Variable], AfterValidator(variable_names)]
Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    WithJsonSchema({"type": "string", "examples": ["90s", "3h", "1h30m", "2d"]}),
]
Size = Annotated[
    int, BeforeValidator(_size), WithJsonSchema({"type": "string", "examples": ["16 GB"]})
]
_WORDS_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
Words = Annotated[list[str], BeforeValidator(_words), WithJsonSchema(_WORDS_SCHEMA)]
Command = Annotated[
    list[str], BeforeValidator(_words), AfterValidator(_command), WithJsonSchema(_WORDS_SCHEMA)
]
