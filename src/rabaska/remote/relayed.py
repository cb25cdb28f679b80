"""Connections to a server inside a job, all through one stream that its scheduler gives us.

The stream is a command like that of `rabaska exec`: it needs no port, no forwarding, and no ssh to
compute nodes where the scheduler starts commands by itself. When it breaks, the next connection
makes it again; the server does not depend on it.
"""

import os
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, cast

from rabaska.domain import untrusted
from rabaska.errors import CommandFailed, RabaskaError
from rabaska.node.job.relay import MARK, Mux
from rabaska.remote.place import Place

_HELLO = {"token": str, "left": (float, None)}
_LONGEST = 1 << 16  # bytes of a line
_SSH_SAID = re.compile(
    r"Permission denied \(|Host key verification|^ssh: |^Connection (closed|reset)", re.MULTILINE
)
_NO_SSH = (
    "only Slurm and Flux start a command in a job that runs; here the login node goes to its node "
    "by ssh: ask the site whether `ssh NODE` is allowed there to those who have a job on it; "
    "`rabaska shell`, `rabaska tensorboard` and `rabaska fetch` need no such way"
)


@dataclass(frozen=True)
class Hello:
    """What the server says of itself."""

    token: str
    ends: float | None  # by the monotonic clock of this computer


class Relayed:
    """The stream, made when it is needed."""

    def __init__(
        self,
        place: Place,
        script: str,
        what: str,
        ended: Callable[[], RabaskaError | None] = lambda: None,
    ) -> None:
        """`ended` says how the job ended, where there is no way to it any more."""
        self._place, self._script, self._what, self._ended = place, script, what, ended
        self._lock = threading.Lock()
        self._made: tuple[Mux, Hello] | None = None
        self._stack = ExitStack()

    def connect(self) -> socket.socket:
        """Through a new stream where the one that was made turns out to be cut."""
        mux = self._opened()[0]
        try:
            return mux.connect()
        except OSError:
            mux.over = True
            return self._opened()[0].connect()

    def hello(self) -> Hello:
        """What the server said when the stream was made."""
        return self._opened()[1]

    def _opened(self) -> tuple[Mux, Hello]:
        with self._lock:
            if self._made is not None and not self._made[0].over:
                return self._made
            self._stack.close()
            conversation = self._stack.enter_context(self._place.converse(self._script))
            told = self._read_hello(conversation.output)
            if told is None:
                raise self._ended() or self._unreached(conversation.complaint())
            mux = Mux(cast(BinaryIO, conversation.output), cast(BinaryIO, conversation.feed))
            threading.Thread(target=mux.run, name="relay", daemon=True).start()
            left = told["left"]
            ends = None if left is None else time.monotonic() + left
            self._made = mux, Hello(told["token"], ends)
            return self._made

    def _unreached(self, complaint: str) -> CommandFailed:
        lines = complaint.splitlines()
        why = lines[-1] if lines else "the stream to it ended at once"
        hint = _NO_SSH if _SSH_SAID.search(complaint) else "`rabaska logs` shows what it said"
        return CommandFailed(f"{self._what} cannot be reached", why=why, hint=hint)

    def _read_hello(self, output: IO[bytes]) -> dict[str, Any] | None:
        """The line after the mark; what start-up files print before it is nothing to us."""
        while line := output.readline(_LONGEST):
            if line.startswith(MARK):
                try:
                    value: dict[str, Any] = untrusted.read(line.removeprefix(MARK), _HELLO)
                except untrusted.Unexpected as problem:
                    raise untrusted.unusable("", problem) from problem
                return value
        return None

    def close(self) -> None:
        if self._made is not None:
            self._made[0].over = True
        self._stack.close()


def join_standard(line: socket.socket) -> None:
    """Pass on our input to `line`, and what it says to our output, until it has said all."""

    def speak() -> None:
        with suppress(OSError):
            while data := os.read(0, _LONGEST):
                line.sendall(data)
            line.shutdown(socket.SHUT_WR)

    threading.Thread(target=speak, name="input", daemon=True).start()
    with line, suppress(OSError):
        while data := line.recv(_LONGEST):
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]
