"""The reference page of rabaska.toml, written from its model so that it cannot be out of date.

`python -m rabaska.settings.reference docs/reference` writes it and the JSON Schema there."""

import json
import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from rabaska.settings.project_tables import Settings
from rabaska.settings.validation import TableType, inner_table


def schema() -> dict[str, Any]:
    made = _plain(Settings.model_json_schema(by_alias=True))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **made,
        "title": "rabaska.toml",
    }


def _plain(value: Any) -> Any:
    """The same for people who write TOML: no null, no class names as titles, and no defaults,
    which are Python's and would be offered as if one could write them down."""
    if isinstance(value, list):
        return [_plain(each) for each in value if each != {"type": "null"}]
    if not isinstance(value, dict):
        return value
    plain = {key: _plain(each) for key, each in value.items() if not _left_out(key, each)}
    if isinstance(plain.get("description"), str):
        plain["description"] = re.sub(r"\s+", " ", plain["description"])
    if len(plain.get("anyOf", ())) == 1:
        return {**plain.pop("anyOf")[0], **plain}
    return plain


def _left_out(key: str, value: Any) -> bool:
    # A key may be called `title`; its value is then a schema, not text.
    return key == "default" or (key == "title" and isinstance(value, str))


PAGE = "rabaska-toml.md"
SCHEMA = "rabaska.schema.json"

EXAMPLE = """\
name = "digits"
command = "python train.py --data {data} --output {output} --resume {checkpoint}"

[data.digits]
path = "data/digits"

[environment]
requirements = "requirements.txt"

[resources]
walltime = "3h"
gpus = 1
cores = 4
memory = "16 GB"

[chain]
jobs = 4

[cluster.beluga]
account = "def-prof"

[cluster.beluga.resources]
gpu_model = "v100"
"""

_INTRODUCTION = f"""\
# rabaska.toml

Everything rabaska needs to know about a project is in `rabaska.toml`, in the project folder.
Only `command` is required. `rabaska init` writes the file; commands find it in the current
folder and in those above it.

```toml
{EXAMPLE}```

Durations are written `90s`, `30m`, `3h`, `1h30m`, `2d` or `12:00:00`; sizes `500 MB`, `16 GB` or
`2 GiB`. Relative paths begin at the project folder. What the command line says wins over the file,
and in the file `[cluster.NAME]` wins over the rest.

Editors that know JSON Schema (Even Better TOML, taplo) complete and check the file as you type:
put [rabaska.schema.json](rabaska.schema.json) next to it, and `#:schema ./rabaska.schema.json` on
its first line.
"""


def page() -> str:
    return "\n".join([_INTRODUCTION, "## At the top\n", *_rows(Settings), "", *_tables()])


def _tables() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        table = inner_table(field.annotation)
        if table:
            heading = f"{name}.NAME" if get_origin(field.annotation) is dict else name
            yield from [f"## [{heading}]\n", _one_line(table.__doc__), "", *_rows(table), ""]


def _rows(table: TableType) -> Iterator[str]:
    yield "| Key | Value | When left out | Meaning |"
    yield "|---|---|---|---|"
    for name, field in table.model_fields.items():
        if table is Settings and inner_table(field.annotation):
            continue
        cells = [
            f"`{field.alias or name}`",
            _kind(field),
            _default(field),
            _one_line(field.description),
        ]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _kind(field: FieldInfo) -> str:
    annotation = field.annotation
    if inner_table(annotation):
        return "table"
    choices = _choices(annotation)
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    words = str(annotation) + str(field.metadata)
    for sign, kind in _KINDS.items():
        if sign in words:
            return kind
    return "text"


_KINDS = {
    "_words": "text or list of words",
    "timedelta": "duration",
    "_size": "size",
    "dict": "table of text",
    "list": "list of text",
    "bool": "`true` or `false`",
    "int": "whole number",
}


def _choices(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default()
    if value in (None, "", [], {}) or inner_table(field.annotation):
        return ""
    if isinstance(value, timedelta):
        return f'`"{value.total_seconds() / 3600:g}h"`'
    if isinstance(value, list):
        return " ".join(f"`{entry}`" for entry in value)
    return f"`{json.dumps(value)}`"


def _one_line(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").strip()


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PAGE).write_text(page(), "utf-8")
    (folder / SCHEMA).write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
