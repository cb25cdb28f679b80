"""What a cluster answers, checked before it is used: whoever controls its login node wrote it.

A shape says what our own program there would have answered:

    str, bool, None     a text, true or false, null
    int, float          a number of a sensible size; `float` takes both, also nan
    TIME                seconds since 1970, or a number of them
    SIZE, NANOSECONDS   as file systems count bytes, and when a file was written
    PATH                a text that can be the path of a file
    a pattern           a text that matches all of it
    (a, b)              one of these, the likely one first
    [a]                 a list of them
    {"key": a, "k?": b} an object; `k` may be left out, and more than these may be there
    {str: a}            an object whose keys are names
"""

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from rabaska.errors import CommandFailed

Shape = Any
_MOST = 1 << 70  # some file systems say that 2**64 files are free
_LATEST = 1e11  # seconds since 1970: as far as clocks and calendars can be trusted to count
_SHOWN = 60  # letters of an answer that is quoted


class Unexpected(ValueError):
    """An answer that our own program does not give."""


def TIME(value: object) -> bool:  # noqa: N802 - a shape, like those that are types
    return _is_number(value) and 0 <= float(value) <= _LATEST  # type: ignore[arg-type]


def SIZE(value: object) -> bool:  # noqa: N802
    return _fits(value, int) and 0 <= value < 1 << 63  # type: ignore[operator]


def NANOSECONDS(value: object) -> bool:  # noqa: N802
    return _fits(value, int) and abs(value) < 1 << 62  # type: ignore[arg-type]


def PATH(value: object) -> bool:  # noqa: N802
    if not isinstance(value, str) or not value or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:  # half of a pair of surrogates, which no file name holds
        return False
    return True


def read(text: "str | bytes", shape: Shape) -> Any:
    """The value of a JSON text; Unexpected when it is none, or is not of that shape."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as problem:
        shown = text if isinstance(text, str) else text.decode("utf-8", "replace")
        raise Unexpected(f"{_quoted(shown)} is not JSON") from problem
    return checked(value, shape)


def read_lines(text: str, shape: Shape) -> list[Any]:
    """The value of each line that is an object; start-up files print other lines before them."""
    return [read(line, shape) for line in text.splitlines() if line.startswith("{")]


def checked(value: Any, shape: Shape) -> Any:
    """The same value; Unexpected when it is not of that shape."""
    if not fits(value, shape):
        raise Unexpected(_problem(value, shape, "the answer"))
    return value


def fits(value: Any, shape: Shape) -> bool:
    """Whether a value is of that shape; `status` asks for hundreds of reports, and soon."""
    kind = type(shape)
    if kind is tuple:
        return any(fits(value, inner_shape) for inner_shape in shape)
    if kind is list:
        inner = shape[0]
        return type(value) is list and all(fits(item, inner) for item in value)
    if kind is not dict:
        return _fits(value, shape)
    if type(value) is not dict:
        return False
    if str in shape:
        return all(fits(item, shape[str]) for item in value.values())
    for name, inner_shape in shape.items():
        if name[-1] == "?":
            if name[:-1] in value and not fits(value[name[:-1]], inner_shape):
                return False
        elif name not in value or not fits(value[name], inner_shape):
            return False
    return True


def count(text: str) -> int | None:
    """The number that a command printed; None where it printed something else."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def unusable(cluster: str, problem: Exception) -> CommandFailed:
    """What to tell of an answer that cannot be used."""
    where = cluster or "the cluster"
    return CommandFailed(
        f"{where} gave an answer that rabaska's own program there never gives",
        why=str(problem),
        hint="log in and check whether the `python` of its profile is the real one, and whether "
        "startup files change what commands print; the answer was not used",
    )


def _problem(value: Any, shape: Shape, at: str) -> str:
    """Where a value is not of its shape, in words; empty where it is."""
    if isinstance(shape, tuple):
        problems = [_problem(value, part, at) for part in shape]
        return "" if "" in problems else problems[0]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return _not(at, value, "a list")
        return _first(_problem(part, shape[0], f"an entry of {at}") for part in value)
    if isinstance(shape, Mapping):
        return _problem_of_object(value, shape, at)
    return "" if _fits(value, shape) else _not(at, value, _words(shape))


def _problem_of_object(value: Any, shape: Mapping[Any, Shape], at: str) -> str:
    if not isinstance(value, dict):
        return _not(at, value, "an object")
    if str in shape:
        return _first(_problem(each, shape[str], f"`{name}`") for name, each in value.items())
    for name, each in shape.items():
        key = name.removesuffix("?")
        if key in value:
            problem = _problem(value[key], each, f"`{key}`")
        else:
            problem = "" if name.endswith("?") else f"{at} has no `{key}`"
        if problem:
            return problem
    return ""


def _first(problems: Any) -> str:
    return next((problem for problem in problems if problem), "")


def _fits(value: Any, shape: Shape) -> bool:
    if shape is None:
        return value is None
    if shape is str or shape is bool:
        return type(value) is shape
    if shape is int:
        return isinstance(value, int) and _is_number(value)
    if shape is float:
        return _is_number(value) or (isinstance(value, float) and not math.isfinite(value))
    if isinstance(shape, re.Pattern):
        return isinstance(value, str) and shape.fullmatch(value) is not None
    ask: Callable[[object], bool] = shape
    return ask(value)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and abs(value) < _MOST


def _not(at: str, value: object, what: str) -> str:
    try:
        return f"{at} is not {what} but {_quoted(json.dumps(value))}"
    except RecursionError:  # it took less to read it
        return f"{at} is not {what}"


def _words(shape: Shape) -> str:
    if isinstance(shape, re.Pattern):
        return f"of the form {shape.pattern}"
    words = {
        None: "null",
        bool: "true or false",
        str: "a text",
        int: "a whole number",
        float: "a number",
        TIME: "a time",
        PATH: "a path",
        SIZE: "a size",
        NANOSECONDS: "a time in nanoseconds",
    }
    return words.get(shape, "a number")


def _quoted(text: str) -> str:
    return f"`{text[:_SHOWN]}…`" if len(text) > _SHOWN else f"`{text}`"
