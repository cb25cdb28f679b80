"""Bash at the other end of a connection: scripts in, their words and bytes out."""

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
from rabaska.remote.refusals import lost, refusal

# Login shells may print banners: what counts stands between these two lines.
_BEGIN = "--rabaska-begins--"
_END = "--rabaska-ends--"

_PIPE = 1 << 20  # bytes on their way to ssh; the usual 64 KiB make both ends wait for each other

LOST = 255  # how ssh ends when it was cut off, and no command of ours


@dataclass(frozen=True)
class Shell:
    """Scripts run under `bash -lc`, where site modules and storage variables are defined."""

    connection: Connection

    def run(self, script: str, *, feed: bytes = b"") -> Outcome:
        """Run `script`; a connection lost before it began is made again, once."""
        done = self._try(script, feed)
        if _BEGIN.encode() not in done.stdout:
            self.connection.open_again()
            done = self._try(script, feed)
        outcome = read_outcome(done.stdout, done.stderr)
        if outcome is not None:
            return outcome
        said = done.stderr.decode(errors="replace")
        # It may have done part of its work, so it is not for us to repeat it.
        began = _BEGIN.encode() in done.stdout
        raise (lost if began else refusal)(self.connection.host, said)

    def _try(self, script: str, feed: bytes) -> subprocess.CompletedProcess[bytes]:
        self.connection.open()
        reading = f"echo {_BEGIN}; ( {_reading(script)} ); code=$?; echo; echo {_END} $code"
        return subprocess.run(
            _bash(self.connection, reading),
            input=script.encode() + feed,
            capture_output=True,
            check=False,
        )

    def stream(self, script: str) -> Iterator[bytes]:
        with self.started(script) as started:
            started.feed.close()
            while chunk := started.output.read1(65536):
                yield chunk
            started.expect_success("what is being read")

    @contextmanager
    def started(self, script: str) -> Iterator["Started"]:
        """A script that runs, with its standard input and output open; it ends with the block."""
        self.connection.open()
        command = _bash(self.connection, f"echo {_BEGIN}; {_reading(script)}")
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pipesize=_PIPE,
            ) as process,
        ):
            try:
                started = Started(process, errors, self.connection.host)
                started.begin(script)
                yield started
            finally:
                process.terminate()


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

    def begin(self, script: str) -> None:
        """Hand over the script and pass over everything that the login shell prints first."""
        self.write(script.encode())
        for line in self.output:
            if line.rstrip() == _BEGIN.encode():
                return
        self.process.wait()
        raise refusal(self.host, self.complaint())

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


def _bash(connection: Connection, reading: str) -> list[str]:
    return connection.command(connection.host, f"bash -lc '{reading}'")


def read_outcome(output: bytes, errors: bytes) -> Outcome | None:
    """What stands between the two marks, or None when the connection did not hold so long."""
    text = output.decode(errors="replace")
    framed = re.search(rf"{_BEGIN}\n(.*)\n{_END} (\d+)\n", text, re.DOTALL)
    if not framed:
        return None
    return Outcome(
        exit_code=int(framed[2]), output=framed[1], errors=errors.decode(errors="replace")
    )
