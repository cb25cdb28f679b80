"""What programs and clusters wrote, without what a page must not hold."""

import re
from html import escape

# What a terminal takes for a command has no place in a page either; a tab and a newline have.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)


def visible(text: object) -> str:
    """What is printed of it: colours of a terminal and other control characters are left out."""
    return _CONTROL.sub("", str(text)).encode(errors="replace").decode()


def escaped(text: object) -> str:
    """The same for markup that we write ourselves."""
    return escape(visible(text))


def with_code(text: object) -> str:
    """The same, with what stands between backquotes as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escaped(text))
