"""The line of each key in a TOML text, for messages about it."""

from rabaska.domain.toml_text import Path, Scan

__all__ = ["Path", "key_lines"]


def key_lines(text: str) -> dict[Path, int]:
    """The line, from 1, of every key, table and list element of a valid TOML `text`."""
    return Scan(text).lines
