"""Control characters in what others wrote: a terminal would obey them."""

import codecs
import re

# Colours as `columns.painted` makes them, and what may follow one another in a text. Everything
# else that a terminal could take for a command: C0, C1, half of a surrogate pair (which cannot be
# printed), and marks that turn the direction of writing.
_OWN_COLOUR = r"\x1b\[(?:0|1|2|3[1-6])m"
_COMMANDS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
_IN_TEXT = re.compile(f"({_OWN_COLOUR})|{_COMMANDS}")

# A log may have any colour, and lines that are written again after a carriage return.
_IN_LOG = re.compile(rf"(\x1b\[[0-9;:]*m|\r)|\x1b\[[0-?]*[ -/]*[@-~]|({_COMMANDS})")
_BEGUN = re.compile(r"\x1b(\[[0-?]{0,64}[ -/]{0,8})?\Z")  # the rest may come with the next bytes


def harmless(text: str) -> str:
    """The text with each control character replaced, but for our own colours."""
    return _IN_TEXT.sub(lambda found: found[1] or "\N{REPLACEMENT CHARACTER}", text)


class HarmlessLog:
    """A log as it comes, for a terminal: colours and carriage returns pass, nothing else does."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = ""

    def __call__(self, chunk: bytes) -> bytes:
        text = self._begun + self._decoder.decode(chunk)
        begun = _BEGUN.search(text)
        self._begun = begun[0] if begun else ""
        ready = text[: len(text) - len(self._begun)]
        shown = _IN_LOG.sub(
            lambda found: found[1] or ("\N{REPLACEMENT CHARACTER}" if found[2] else ""), ready
        )
        return shown.encode()
