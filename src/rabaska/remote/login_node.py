"""A login node as a place: the system's OpenSSH, one shared connection, bash at the other end."""

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rabaska.errors import CommandFailed
from rabaska.node import files
from rabaska.remote.fetch_record import FetchResult
from rabaska.remote.place import Conversation, Delivered, Moved, NodeSide, Outcome, Parcel, quoted
from rabaska.remote.ssh_connection import Connection
from rabaska.remote.ssh_errors import refuse_full_disk
from rabaska.remote.ssh_shell import Shell

__all__ = ["Connection", "Ssh"]


@dataclass(frozen=True)
class Ssh:
    """A place where our words travel over ssh."""

    connection: Connection
    transfer: Connection | None = None  # the site's host for large transfers, if it has one

    def run(self, script: str, *, feed: bytes = b"", again: str = "") -> Outcome:
        return Shell(self.connection).run(script, feed=feed, again=again)

    def attach(self, script: str, *, terminal: bool) -> int:
        return Shell(self.connection).attach(script, terminal=terminal)

    def converse(self, script: str) -> AbstractContextManager[Conversation]:
        return Shell(self.connection).started(script)

    def stream(
        self, script: str, *, feed: bytes = b"", by_transfer: bool = False
    ) -> Iterator[bytes]:
        host = self.transfer if by_transfer and self.transfer else self.connection
        return Shell(host).stream(script, feed=feed)

    def send(self, source: Path, target: str) -> None:
        import hashlib  # `status` sends nothing

        content = source.read_bytes()
        digest, folder = hashlib.sha256(content).hexdigest(), posixpath.dirname(target)
        # Two senders may be at it at once, so each has a partial file of its own.
        outcome = self.run(
            f"set -e; mkdir -p {quoted([folder])}\n"
            f"partial={quoted([target])}.$HOSTNAME.$${files.PARTIAL}\n"
            "trap 'rm -f \"$partial\"' EXIT\n"
            'cat > "$partial"\n'
            f'echo "{digest}  $partial" | sha256sum --check --status\n'
            f'mv "$partial" {quoted([target])}',
            feed=content,
        )
        if outcome.exit_code != 0:
            refuse_full_disk(outcome.complaint)
            raise CommandFailed(
                f"{source.name} could not be sent to {self.connection.host}", why=outcome.complaint
            )

    def deliver(
        self, parcels: Sequence[Parcel], node: NodeSide, moved: Moved | None = None
    ) -> Delivered:
        from rabaska.remote.push_over_ssh import deliver  # `status` shall not wait for it

        transfer = Shell(self.transfer) if self.transfer else None
        return deliver(parcels, Shell(self.connection), node, moved or _unreported, transfer)

    def bring(
        self,
        source: str,
        target: Path,
        node: NodeSide,
        *,
        leave_out: Sequence[str] = (),
        moved: Moved | None = None,
    ) -> FetchResult:
        from rabaska.remote.fetch_over_ssh import bring

        freight = Shell(self.transfer or self.connection)
        return bring(source, target, freight, node, leave_out, moved or _unreported)


def _unreported(_done: int, _total: int) -> None: ...
