"""The words of a command that both sides read: placeholders, and whether one is a Python."""

import re
from typing import List

CHECKPOINT = "checkpoint"
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_.-]*)\}")
_PYTHON = re.compile(r"(.*/)?(python|pypy)[0-9.]*")


def placeholders(words: List[str]) -> List[str]:
    """The names between single braces in `words`, in order."""
    found = (match.group(1) for word in words for match in PLACEHOLDER.finditer(word))
    return [name for name in found if name]


def is_python(word: str) -> bool:
    return _PYTHON.fullmatch(word) is not None
