"""The keys and values that a table may have: their types, checked, each mistake with its line."""

import copy
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ValidationError, WithJsonSchema

from rabaska.domain import amounts
from rabaska.node import environment_variables
from rabaska.settings.document import Mistake, Path, nearest

TableType = type[BaseModel]
_OF_OWN_FILE = ("command", "webhook", "webhook_as", "webhook_token")  # keys of [notify]
_OWN_FILE = "it belongs in your own settings.toml: rabaska.toml is sent with the code"


def keys(table: TableType) -> list[str]:
    """The keys of a table as they are written, which `as` is not in Python."""
    return [field.alias or name for name, field in table.model_fields.items()]


def table_at(top: TableType, path: Path) -> TableType | None:
    """The table that stands at `path`, or None where there is a plain value."""
    table: TableType | None = top
    chosen = False  # the next word is a name that the user chose, as in [data.NAME]
    for part in path:
        if chosen:
            chosen = False
            continue
        field = table.model_fields.get(str(part)) if table else None
        table = inner_table(field.annotation) if field else None
        chosen = field is not None and get_origin(field.annotation) is dict
    return None if chosen else table


def home_of(top: TableType, table: Path, key: str) -> str:
    """Where `key` would be right: a common slip is to write it under the wrong [table]."""
    for around in dict.fromkeys((table, ())):
        for name, inner in _inner_tables(table_at(top, around)).items():
            if key in keys(inner):
                return f"it belongs in [{'.'.join(map(str, (*around, name)))}]"
    if table and key in keys(top):
        return "it belongs at the top of the file, before the first [table]"
    return ""


def inner_table(annotation: Any) -> TableType | None:
    """The table inside `Table`, `Table | None` or `dict[str, Table]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (inner_table(part) for part in get_args(annotation))
    return next((table for table in inner if table), None)


def _inner_tables(table: TableType | None) -> dict[str, TableType]:
    """The tables with a fixed name directly inside `table`."""
    tables = {}
    for name, field in table.model_fields.items() if table else ():
        inner = inner_table(field.annotation)
        if inner and get_origin(field.annotation) is not dict:
            tables[name] = inner
    return tables


Model = TypeVar("Model", bound=BaseModel)

_MUST_BE = {
    "string_type": "it must be text in quotes",
    "int_type": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "bool_type": "it must be true or false",
    "list_type": 'it must be a list, such as ["a", "b"]',
    "dict_type": "it must be a table",
    "model_type": "it must be a table",
    "model_attributes_type": "it must be a table",
    "greater_than_equal": "it must be at least {ge}",
    "less_than_equal": "it must be at most {le}",
    "too_short": "it must not be empty",
}


def checked(model: type[Model], values: dict[str, Any]) -> tuple[Model | None, list[Mistake]]:
    """`values` as `model`, and every mistake found in them.

    What is wrong is left out and the rest is read again, so that one misspelt key does not
    hide what is wrong elsewhere; the model is None when the rest cannot stand alone.
    """
    try:
        return model.model_validate(values), []
    except ValidationError as problem:
        errors = problem.errors(include_url=False)
    unknown = [_unknown_key(model, error["loc"]) for error in errors if _is_unknown(error)]
    # A key that is missing because it is misspelt has been named once already.
    guessed = {mistake.advice for mistake in unknown}
    wrong = [_wrong_value(error) for error in errors if not _is_unknown(error)]
    wrong = [mistake for mistake in wrong if f"did you mean `{mistake.path[-1]}`?" not in guessed]
    try:
        rest = model.model_validate(_without(values, [error["loc"] for error in errors]))
    except ValidationError:
        return None, unknown + wrong
    return rest, unknown + wrong


def _is_unknown(error: Mapping[str, Any]) -> bool:
    return bool(error["type"] == "extra_forbidden")


def _unknown_key(model: type[BaseModel], path: Path) -> Mistake:
    key, around = str(path[-1]), path[:-1]
    table = table_at(model, around)
    names = keys(table) if table else []
    listed = "the keys here are " + ", ".join(f"`{name}`" for name in names)
    own = _OWN_FILE if around == ("notify",) and key in _OF_OWN_FILE else ""
    advice = own or nearest(key, names) or home_of(model, around, key) or listed
    return Mistake(path, f"unknown key `{key}`", advice)


def _wrong_value(error: Mapping[str, Any]) -> Mistake:
    path, kind, context = error["loc"], error["type"], error.get("ctx", {})
    if kind == "missing":
        table = f"no `{path[-1]}` in [{'.'.join(map(str, path[:-1]))}]"
        return Mistake(path, table if path[:-1] else f"no `{path[-1]}`", _what_for(path))
    what = f"`{_key(path)} = {_shown(error['input'])}`"
    if kind == "value_error":
        return Mistake(path, what, str(context["error"]))
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        listed = "it can be " + ", ".join(f"`{choice}`" for choice in choices)
        return Mistake(path, what, nearest(str(error["input"]), choices) or listed)
    return Mistake(path, what, _MUST_BE.get(kind, error["msg"]).format(**context))


def _what_for(path: Path) -> str:
    return 'write how you train, such as "python train.py"' if path == ("command",) else ""


def _key(path: Path) -> str:
    """The last word of `path`: places in a list say less than the name of the list."""
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "…"


def _without(values: dict[str, Any], paths: Iterable[Path]) -> dict[str, Any]:
    """`values` less what stands at `paths`; of a list, all goes when one element does."""
    rest = copy.deepcopy(values)
    for path in paths:
        table = rest
        for place, part in enumerate(path, 1):
            inner = table.get(str(part))
            if place == len(path) or not isinstance(inner, dict):
                table.pop(str(part), None)
                break
            table = inner
    return rest


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
    if (size := len(value.encode())) > _LONGEST:
        too_long = f"it has {size:,} bytes, and systems allow {_LONGEST:,}"
        raise ValueError(f"{too_long}; keep it in a file, and give the file's name")
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
