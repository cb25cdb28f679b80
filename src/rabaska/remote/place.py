"""A place where commands run and files are kept: this computer, or a login node."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Moved = Callable[[int, int], None]  # bytes moved so far, bytes in all


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and what it said."""

    exit_code: int
    output: str
    errors: str

    @property
    def complaint(self) -> str:
        """The command's own words about what went wrong."""
        return self.errors.strip() or self.output.strip() or f"exit code {self.exit_code}"


class Place(Protocol):
    """Where a cluster's commands run. Scripts are text for bash; callers quote what they insert."""

    def run(self, script: str, *, feed: bytes = b"") -> Outcome:
        """Run `script` to its end, `feed` on its standard input."""

    def stream(self, script: str) -> Iterator[bytes]:
        """What `script` prints, as it prints it; closing the iterator ends the command."""

    def send(self, source: Path, target: str, moved: Moved | None = None) -> None:
        """Copy a file or folder there; it appears under `target` whole or not at all."""

    def bring(
        self,
        source: str,
        target: Path,
        *,
        leave_out: Sequence[str] = (),
        moved: Moved | None = None,
    ) -> int:
        """Copy a folder into `target`, never over something newer; how many files came."""


def quoted(words: Sequence[str]) -> str:
    return " ".join(shlex.quote(word) for word in words)
