"""A place where commands run and files are kept: this computer, or a login node."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from rabaska.errors import Unreachable
from rabaska.node.private_files import UMASK
from rabaska.remote.fetch_record import FetchResult
from rabaska.remote.ssh_errors import ConnectionLost

NO_PROGRAM = 97  # how a guarded script ends where our own program is not there yet
_TRIES = 4  # more in a row say that the connection is gone for good

Moved = Callable[[int, int], None]  # bytes moved so far, bytes in all


class SourceGone(Exception):
    """The folder that was to be brought is not there, or was renamed meanwhile."""


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


@dataclass(frozen=True)
class Parcel:
    """A file or folder that is named by what it holds, and where it is to be."""

    source: Path
    target: str
    # The sha256 of files inside, by name, where they are known; the others are computed.
    digests: Mapping[str, str] = field(default_factory=dict)
    # Whether what is there was found damaged: then all of it is proven again.
    doubted: bool = False
    # Whether it is worth compressing on its way; asked only if it has to travel.
    shrinks: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Delivered:
    """What had to be sent."""

    missing: int  # bytes
    stripes: int = 0  # on Lustre: over how many servers its large files are spread


class NodeSide(Protocol):
    """Our own program at a place."""

    @property
    def node(self) -> tuple[str, ...]:
        """The words that start it."""

    def quickly(self, *words: str) -> str:
        """The script that asks it something, by the shortest way."""

    def guarded(self, script: str) -> str:
        """A script that uses it, and does nothing where it is missing; see NO_PROGRAM."""

    def send_program(self) -> None:
        """Send it there."""

    def run(self, script: str, *, feed: bytes = b"") -> Outcome:
        """Run a script that uses it; it is sent first where it is missing."""


class Conversation(Protocol):
    """A script that runs, with its standard input and output open."""

    @property
    def feed(self) -> IO[bytes]: ...

    @property
    def output(self) -> IO[bytes]: ...

    def complaint(self) -> str:
        """What it said on standard error."""


class Place(Protocol):
    """Where a cluster's commands run. Scripts are text for bash; callers quote what they insert.

    Everybody on a computer can read a script, for it may be part of a command line. What may hold
    a secret is fed.
    """

    def run(self, script: str, *, feed: bytes = b"", again: str = "") -> Outcome:
        """Run `script` to its end, `feed` on its standard input.

        A script that only asks may name the occasion on which it will be asked `again`.
        """

    def stream(
        self, script: str, *, feed: bytes = b"", by_transfer: bool = False
    ) -> Iterator[bytes]:
        """What `script` prints, as it prints it; closing the iterator ends the command.

        `by_transfer` runs it on the site's host for large transfers, if it has one.
        """

    def converse(self, script: str) -> AbstractContextManager[Conversation]:
        """Start `script`, and talk to it until the block ends, and the script with it."""

    def attach(self, script: str, *, terminal: bool) -> int:
        """Run `script` in the foreground, with our own input and output; its exit code."""

    def send(self, source: Path, target: str) -> None:
        """Copy a small file there; it appears under `target` whole or not at all."""

    def deliver(
        self, parcels: Sequence[Parcel], node: NodeSide, moved: Moved | None = None
    ) -> Delivered:
        """Copy the parcels that are not there.

        Each appears whole and proven, or not at all.
        """

    def bring(
        self,
        source: str,
        target: Path,
        node: NodeSide,
        *,
        leave_out: Sequence[str] = (),
        moved: Moved | None = None,
    ) -> FetchResult:
        """Copy a folder into `target`, never over what was changed here, nor links that lead out.

        SourceGone when `source` is not there, or was renamed meanwhile.
        """


def surely(attempt: Callable[[], Outcome]) -> Outcome:
    """Try what may be said twice until an answer comes, though connections break."""
    for _ in range(_TRIES):
        try:
            return attempt()
        except ConnectionLost:
            continue
    return attempt()


def closed(umask: str) -> str:
    """Shell words: what follows is made for the user alone, and the user's own umask is kept."""
    return f"export {UMASK}=$(umask); umask {umask}"


def quoted(words: Sequence[str]) -> str:
    return " ".join(shlex.quote(word) for word in words)


@dataclass(frozen=True)
class Nowhere:
    """Answers every question with a failure, and moves nothing."""

    why: str

    def run(self, script: str, *, feed: bytes = b"", again: str = "") -> Outcome:
        return Outcome(exit_code=255, output="", errors=self.why)

    def stream(
        self, script: str, *, feed: bytes = b"", by_transfer: bool = False
    ) -> Iterator[bytes]:
        raise self._refusal()

    def converse(self, script: str) -> AbstractContextManager[Conversation]:
        raise self._refusal()

    def attach(self, script: str, *, terminal: bool) -> int:
        raise self._refusal()

    def send(self, source: Path, target: str) -> None:
        raise self._refusal()

    def deliver(
        self, parcels: Sequence[Parcel], node: NodeSide, moved: Moved | None = None
    ) -> Delivered:
        raise self._refusal()

    def bring(
        self,
        source: str,
        target: Path,
        node: NodeSide,
        *,
        leave_out: Sequence[str] = (),
        moved: Moved | None = None,
    ) -> FetchResult:
        raise self._refusal()

    def _refusal(self) -> Unreachable:
        return Unreachable("the cluster is not contacted", why=self.why)
