"""The values of a trial in a JSON or YAML file: alone, or in the place that they have in a file.

YAML is changed line by line, because no Python without packages can read it: `lr: 0.1` in a block
gets another value, and everything else stays as it is written.
"""

import json
import re
from typing import Any, Dict, List, Optional, Tuple

# Indentation, perhaps `- `, a key, a value, a comment.
_LINE = re.compile(
    r"(?P<indent> *)(?P<key>[\w.-]+|\"[^\"]*\"|'[^']*')(?P<colon>[ \t]*:)"
    r"(?P<space>[ \t]*)(?P<value>(?:\"[^\"]*\"|'[^']*'|[^#\s]|(?<!\s)#|[ \t](?!#))*?)"
    r"(?P<rest>[ \t]*(?:[ \t]#.*)?)\Z"
)


class NotThere(ValueError):
    """A name that the file does not have, or not as one value."""

    def __init__(self, name: str, known: List[str]) -> None:
        super().__init__(name)
        self.name, self.known = name, known


def scalar(value: Any) -> str:
    """As JSON and YAML both read it: to YAML 1.1, `1e-05` is a text and `1.0e-05` a number."""
    text = json.dumps(value)
    if isinstance(value, float) and "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text


def alone(values: Dict[str, Any]) -> str:
    lines = ["  {}: {}".format(json.dumps(name), scalar(value)) for name, value in values.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def changed(name: str, text: str, values: Dict[str, Any]) -> str:
    """The text of the file `name` with other values; NotThere for a name that it does not have."""
    return _json(text, values) if name.endswith(".json") else _yaml(text, values)


def _json(text: str, values: Dict[str, Any]) -> str:
    content = json.loads(text)
    for name, value in values.items():
        inner, keys = content, [name] if name in content else name.split(".")
        for key in keys[:-1]:
            inner = inner.get(key) if isinstance(inner, dict) else None
        found = inner.get(keys[-1], {}) if isinstance(inner, dict) else {}
        if isinstance(found, (dict, list)):
            raise NotThere(name, [key for key, _ in flat(content)])
        inner[keys[-1]] = value
    return json.dumps(content, indent=2) + "\n"


def flat(content: Any, before: str = "") -> List[Tuple[str, Any]]:
    if not isinstance(content, dict):
        return [(before[:-1], content)]
    return [one for key, inner in content.items() for one in flat(inner, before + key + ".")]


def _yaml(text: str, values: Dict[str, Any]) -> str:
    lines, places = text.splitlines(), _places(text)
    for name, value in values.items():
        if name not in places:
            raise NotThere(name, list(places))
        at, found = places[name]
        kept = found.group("indent") + found.group("key") + found.group("colon")
        lines[at] = kept + (found.group("space") or " ") + scalar(value) + found.group("rest")
    return "\n".join(lines) + "\n"


def _places(text: str) -> "Dict[str, Tuple[int, re.Match[str]]]":
    """Where each single value stands: its full name, the line and its parts."""
    found: "Dict[str, Tuple[int, re.Match[str]]]" = {}
    path: List[Tuple[int, str]] = []
    inside: Optional[int] = None  # the indentation of a text of several lines, or of a list
    for at, line in enumerate(text.splitlines()):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip(" "))
        if inside is not None and indent > inside:
            continue
        inside = None
        matched = _LINE.match(line)
        if matched is None:
            inside = indent if stripped.startswith("-") else None
            continue
        while path and path[-1][0] >= indent:
            path.pop()
        key = matched.group("key").strip("\"'")
        value = matched.group("value").strip()
        if not value:
            path.append((indent, key))
        elif value[0] in "|>":
            inside = indent
        elif value[0] not in "[{&*!":
            found[".".join([one for _, one in path] + [key])] = (at, matched)
    return found
