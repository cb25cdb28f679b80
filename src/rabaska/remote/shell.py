"""Bash at the other end of a connection: scripts in, their words and bytes out."""

import base64
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from typing import IO, cast

from rabaska.errors import CommandFailed
from rabaska.remote.connection import Connection
from rabaska.remote.place import Outcome
from rabaska.remote.refusals import NotBegun, lost, not_begun

# Login shells may print banners: what counts stands between these two marks.
_BEGIN = "--rabaska-begins--"
_END = "--rabaska-ends--"

_PIPE = 1 << 20  # bytes on their way to ssh; the usual 64 KiB make both ends wait for each other

LOST = 255  # how ssh ends when it was cut off, and no command of ours


@dataclass(frozen=True)
class Shell:
    """Scripts run under `bash -lc`, where site modules and storage variables are defined."""

    connection: Connection

    def run(self, script: str, *, feed: bytes = b"") -> Outcome:
        """Run `script`; if the connection breaks it may have done part of its work, so it is
        not for us to repeat it."""
        framed = f"( {_reading(script)} ); code=$?; echo; echo {_END} $code"
        with self._bash(framed) as far:
            output, _ = far.process.communicate(script.encode() + feed)
            outcome = read_outcome(output, far.complaint())
            if outcome is None:
                raise lost(far.host, far.complaint())
            return outcome

    def attach(self, script: str, *, terminal: bool) -> int:
        """Run `script` with our own input and output; the script itself travels as an argument."""
        self.connection.open()
        encoded = base64.b64encode(script.encode()).decode()
        reading = f"bash -lc 'eval \"$(echo {encoded} | base64 -d)\"'"
        command = self.connection.command("-tt" if terminal else "-T", self.connection.host)
        return subprocess.run([*command, reading], check=False).returncode

    def stream(self, script: str) -> Iterator[bytes]:
        with self.started(script) as far:
            far.feed.close()
            while chunk := far.output.read1(65536):
                yield chunk
            far.expect_success("what was being read")

    @contextmanager
    def started(self, script: str) -> Iterator["Started"]:
        """A script that runs, with its standard input and output open; it ends with the block."""
        with self._bash(_reading(script)) as far:
            far.write(script.encode())
            yield far

    @contextmanager
    def _bash(self, reading: str) -> Iterator["Started"]:
        """A bash that waits for its script; where the connection was dead, it is made again."""
        self.connection.open()
        try:
            far = self._start(reading)
        except NotBegun:
            self.connection.open_again()
            far = self._start(reading)
        with far.errors, far.process:
            try:
                yield far
            finally:
                far.process.terminate()
                # Bytes that nobody will read any more must not hide why we stopped.
                with suppress(BrokenPipeError):
                    far.feed.close()

    def _start(self, reading: str) -> "Started":
        host = self.connection.host
        command = [*self.connection.plain_shell(), host, f"bash -lc 'echo {_BEGIN}; {reading}'"]
        errors = tempfile.TemporaryFile()
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            pipesize=_PIPE,
        )
        far = Started(process, errors, host)
        # Login shells may print a banner first. Only after our own line the script is handed
        # over: what did not say it did not get the script either, and may be tried again.
        try:
            for line in far.output:
                if line.rstrip().endswith(_BEGIN.encode()):
                    return far
        except BaseException:  # Ctrl-C
            process.kill()
            raise
        with errors, process:
            process.wait()
            raise not_begun(host, far.complaint())


@dataclass(frozen=True)
class Started:
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    host: str

    @property
    def feed(self) -> IO[bytes]:
        return cast(IO[bytes], self.process.stdin)

    @property
    def output(self) -> BufferedReader:
        return cast(BufferedReader, self.process.stdout)

    def write(self, data: bytes) -> None:
        """Feed it; if it does not listen any more, how it ended says why."""
        with suppress(BrokenPipeError):
            self.feed.write(data)
            self.feed.flush()

    def ended(self) -> int:
        """Its exit code, when it has none of our input left to read."""
        with suppress(BrokenPipeError):
            self.feed.close()
        return self.process.wait()

    def expect_success(self, doing: str) -> None:
        code = self.ended()
        if code == LOST:
            raise lost(self.host, self.complaint(), doing)
        if code != 0:
            raise CommandFailed(
                f"a command failed on {self.host}", why=self.complaint() or f"exit code {code}"
            )

    def complaint(self) -> str:
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace").strip()


def _reading(script: str) -> str:
    """The script travels on standard input, before whatever it is fed: no quoting can
    break it, whichever shell the login node starts, and no limit of length applies."""
    return f'eval "$(head -c {len(script.encode())})"'


def read_outcome(output: bytes, errors: str) -> Outcome | None:
    """What stands before the last mark, or None when the connection did not hold so long."""
    framed = re.search(rf"\A(.*)\n{_END} (\d+)\n", output.decode(errors="replace"), re.DOTALL)
    return framed and Outcome(exit_code=int(framed[2]), output=framed[1], errors=errors)
