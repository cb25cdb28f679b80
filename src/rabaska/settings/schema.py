"""The JSON Schema of rabaska.toml, with which editors complete and check as one types."""

import re
from typing import Any

from rabaska.settings.model import Settings


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
