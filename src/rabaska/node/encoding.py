"""Output that can say every file name, whatever the locale: some names are no text."""

import codecs
import io
import sys
from typing import Any, Tuple, Union

_ANY_NAME = "rabaska.any-name"


def _as_it_is(problem: UnicodeError) -> Tuple[Union[str, bytes], int]:
    """The byte that Python could not read as text, else the character by its number."""
    for handler in ("surrogateescape", "backslashreplace"):
        try:
            return codecs.lookup_error(handler)(problem)
        except UnicodeError:
            continue
    raise problem


codecs.register_error(_ANY_NAME, _as_it_is)


def allow_any_name(encoding: str = "") -> None:
    """From now on nothing that is printed fails for its letters; in `encoding`, if given."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            setattr(sys, name, _tolerant(stream, encoding or stream.encoding))


def _tolerant(stream: io.TextIOWrapper, encoding: str) -> Any:
    if hasattr(stream, "reconfigure"):
        # By the line: what is said and what is printed stay in order where both go into one pipe.
        stream.reconfigure(encoding=encoding, errors=_ANY_NAME, line_buffering=True)
        return stream
    stream.flush()  # Python 3.6
    return io.TextIOWrapper(stream.buffer, encoding, _ANY_NAME, line_buffering=True)
