"""Which tables and keys a settings file may hold, asked of its model."""

from typing import Any, get_args, get_origin

from pydantic import BaseModel

from rabaska.settings.lines import Path

TableType = type[BaseModel]


def keys(table: TableType) -> list[str]:
    """The keys of a table as they are written, which `as` is not in Python."""
    return [field.alias or name for name, field in table.model_fields.items()]


def table_at(top: TableType, path: Path) -> TableType | None:
    """The table that stands at `path`, or None where there is a plain value."""
    found: TableType | None = top
    chosen = False  # the next word is a name that the user chose, as in [data.NAME]
    for part in path:
        if chosen:
            chosen = False
            continue
        field = found.model_fields.get(str(part)) if found else None
        found = inner_table(field.annotation) if field else None
        chosen = field is not None and get_origin(field.annotation) is dict
    return None if chosen else found


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
    found = {}
    for name, field in table.model_fields.items() if table else ():
        inner = inner_table(field.annotation)
        if inner and get_origin(field.annotation) is not dict:
            found[name] = inner
    return found
