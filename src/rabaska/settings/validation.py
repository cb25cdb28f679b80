"""Values read into a model; every mistake is named, with the tables and keys that there are."""

import copy
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from rabaska.settings.document import Mistake, Path, nearest

TableType = type[BaseModel]


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
    advice = nearest(key, names) or home_of(model, around, key) or listed
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
