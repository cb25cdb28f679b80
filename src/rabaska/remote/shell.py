"""Bash at the other end of a connection: scripts in, their words and bytes out."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from typing import IO, cast

from rabaska.errors import CommandFailed
from rabaska.remote import calls
from rabaska.remote.calls import Call
from rabaska.remote.connection import Connection
from rabaska.remote.place import Outcome
from rabaska.remote.refusals import NotBegun, lost, not_begun

# Login shells may print banners: what counts stands between these two marks.
_BEGIN = "--rabaska-begins--"
_END = "--rabaska-ends--"

LOST = 255  # how ssh ends when it was cut off, and no command of ours


@dataclass(frozen=True)
class Shell:
    """Scripts run under `bash -lc`, where site modules and storage variables are defined."""

    connection: Connection

    def run(self, script: str, *, feed: bytes = b"", again: str = "") -> Outcome:
        """Run `script`; if the connection breaks it may have done part of its work, so it is
        not for us to repeat it.

        A question that will be asked `again` on some occasion gets a head start then.
        """
        framed = f"( {_reading(script)} ); code=$?; echo; echo {_END} $code"
        with self._bash(framed, script, again) as far:
            output, _ = far.process.communicate(feed)
            outcome = read_outcome(output, far.complaint())
            if outcome is None:
                raise lost(far.host, far.complaint())
            return outcome

    def attach(self, script: str, *, terminal: bool) -> int:
        """Run `script` with our own input and output; the script itself travels as an argument."""
        import base64

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
        with self._bash(_reading(script), script) as far:
            yield far

    @contextmanager
    def _bash(self, reading: str, script: str, again: str = "") -> Iterator["Started"]:
        """A bash that was handed its script and may be fed."""
        words = [*self.connection.plain_shell(), self.connection.host]
        words += [f"bash -lc 'echo {_BEGIN}; {reading}'"]
        far = self._begun_ahead(words, script) or self._begin(words, script)
        if again:
            calls.note(again, words, script, self.connection.folder)
        with far.errors, far.process:
            try:
                yield far
            finally:
                far.process.terminate()
                # Bytes that nobody will read any more must not hide why we stopped.
                with suppress(BrokenPipeError):
                    far.feed.close()

    def _begun_ahead(self, words: Sequence[str], script: str) -> "Started | None":
        call = calls.adopted(words, script, self.connection.folder)
        try:
            return self._heard(call) if call else None
        except NotBegun:
            return None

    def _begin(self, words: Sequence[str], script: str) -> "Started":
        """Where the connection was dead, it is made again."""
        self.connection.open()
        try:
            far = self._heard(Call(words))
        except NotBegun:
            self.connection.open_again()
            far = self._heard(Call(words))
        far.write(script.encode())
        return far

    def _heard(self, call: Call) -> "Started":
        """The call as soon as its bash gives a sign of life.

        Login shells may print a banner first. Only after our own line the script is handed
        over: what did not say it did not get the script either, and may be tried again.
        """
        far = Started(call.process, call.errors, self.connection.host)
        try:
            for line in far.output:
                if line.rstrip().endswith(_BEGIN.encode()):
                    return far
        except BaseException:  # Ctrl-C
            call.process.kill()
            raise
        with call.errors, call.process:
            call.process.wait()
            raise not_begun(far.host, far.complaint())


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
