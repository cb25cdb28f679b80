"""The copy of a rabaska.toml that travels with the code: without the secrets that are in it."""

import tomllib
from collections.abc import Iterator
from typing import Any

from rabaska.domain.secrets import looks_secret, may_tell_secret
from rabaska.domain.toml_text import Path, Scan, Span

_HIDDEN = '"***"'


def without_secrets(content: bytes) -> bytes | None:
    """`content` with `***` in place of what is likely to be a secret.

    None where a secret would still be in it, as one that is also the value of another key, and
    where it is no TOML, so that nobody knows. A file without secrets stays as it is, byte by byte.
    """
    try:
        text = content.decode("utf-8-sig")
        values, scan = tomllib.loads(text), Scan(text)
    except (ValueError, OverflowError, RecursionError):
        return None
    secrets = {path: value for path, value in _leaves(values) if _is_secret(path, value)}
    comments = [span for span in scan.comments if may_tell_secret(scan.text[slice(*span)])]
    if not secrets and not comments:
        return content
    if not secrets.keys() <= scan.values.keys():
        return None
    blanks = [(scan.values[path], _HIDDEN) for path in secrets] + [(span, "#") for span in comments]
    copy = _replaced(scan.text, blanks)
    written = [scan.text[slice(*scan.values[path])] for path in secrets]
    texts = {*map(_text, secrets.values()), *written, *(each.strip("\"'") for each in written)}
    return None if _holds(copy, texts - {""}) else copy.encode()


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that is neither a table nor a list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*path, number))
    else:
        yield path, value


def _is_secret(path: Path, value: Any) -> bool:
    """By the name of its key or of a table around it, or because it holds a password."""
    return any(looks_secret(str(name), _text(value)) for name in path)


def _text(value: Any) -> str:
    """As the program would be given it; of days and times, as they are usually written."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _replaced(text: str, blanks: list[tuple[Span, str]]) -> str:
    for (start, end), instead in sorted(blanks, reverse=True):
        text = text[:start] + instead + text[end:]
    return text


def _holds(copy: str, secrets: set[str]) -> bool:
    """Whether a secret is in the copy, as it is written or as it is meant."""
    meant = [_text(value) for _, value in _leaves(tomllib.loads(copy))]
    return any(secret in place for place in (copy, *meant) for secret in secrets)
