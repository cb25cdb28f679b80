"""What the views share: a remark with its label, and counted nouns."""

from dataclasses import dataclass

NOTE = "note"
WARNING = "warning"
ERROR = "error"


@dataclass(frozen=True)
class Remark:
    """A sentence beside the tables, with its label and, where there is one, what to do."""

    tone: str  # note, warning, error; empty for a plain fact
    label: str
    text: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.label}: {self.text}" if self.label else self.text


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 file`, `2 files`, `1,200 files`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
