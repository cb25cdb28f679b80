"""Bash at the other end of a connection: scripts in, their words and bytes out."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter

from rabaska.errors import CommandFailed
from rabaska.remote import calls
from rabaska.remote.calls import Call
from rabaska.remote.connection import Connection
from rabaska.remote.place import Outcome
from rabaska.remote.refusals import NotBegun, lost, not_begun

# Login shells may print banners: what counts stands between these two marks.
_BEGIN = "--rabaska-begins--"
_END = "--rabaska-ends--"
# The script travels on standard input, before whatever it is fed: no quoting can break it,
# whichever shell the login node starts, and no limit of length applies. A zero ends it.
_SCRIPT = 'IFS= read -rd "" script; eval "$script"'

LOST = 255  # how ssh ends when it was cut off, and no command of ours


@dataclass(frozen=True)
class Shell:
    """Scripts run under `bash -lc`, where site modules and storage variables are defined."""

    connection: Connection

    def run(self, script: str, *, feed: bytes = b"", again: str = "") -> Outcome:
        """Run `script`; if the connection breaks it may have done part of its work, so it is
        not for us to repeat it.

        A question that will be asked `again` on some occasion gets a head start then; it has
        lines that each ask for themselves, in any order.
        """
        words = self._words(f"( {_SCRIPT} ); code=$?; echo; echo {_END} $code")
        with self._bash(words, script) as far:
            if again and feed != far.call.asked:  # else it is noted so
                calls.note(again, words, script, self.connection.folder, feed)
            output = far.call.answer(calls.unasked(feed, far.call.asked))
            outcome = read_outcome(output, far.complaint())
            if outcome is None:
                raise lost(far.host, far.complaint())
            return outcome

    def attach(self, script: str, *, terminal: bool) -> int:
        """Run `script` with our own input and output; the script itself travels as an argument."""
        import base64
        import subprocess

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
        with self._bash(self._words(_SCRIPT), script) as far:
            yield far

    def _words(self, reading: str) -> list[str]:
        shell = [*self.connection.plain_shell(), self.connection.host]
        return [*shell, f"bash -lc 'echo {_BEGIN}; {reading}'"]

    @contextmanager
    def _bash(self, words: list[str], script: str) -> Iterator["Started"]:
        """A bash that was handed its script and may be fed."""
        far = self._begun_ahead(words, script) or self._begin(words, script)
        try:
            yield far
        finally:
            far.call.end()

    def _begun_ahead(self, words: list[str], script: str) -> "Started | None":
        call = calls.adopted(words, script, self.connection.folder)
        try:
            return self._heard(call) if call else None
        except NotBegun:
            return None

    def _begin(self, words: list[str], script: str) -> "Started":
        """Where the connection was dead, it is made again."""
        self.connection.open()
        try:
            far = self._heard(Call(words))
        except NotBegun:
            self.connection.open_again()
            far = self._heard(Call(words))
        far.call.say(calls.handed_over(script))
        return far

    def _heard(self, call: Call) -> "Started":
        """The call as soon as its bash gives a sign of life.

        Login shells may print a banner first. Only after our own line the script is handed
        over: what did not say it did not get the script either, and may be tried again.
        """
        far = Started(call, self.connection.host)
        try:
            for line in call.output:
                if line.rstrip().endswith(_BEGIN.encode()):
                    return far
            call.wait()
            raise not_begun(far.host, far.complaint())
        except BaseException:  # Ctrl-C too
            call.end()
            raise


@dataclass(frozen=True)
class Started:
    """A script that was begun at a host."""

    call: Call
    host: str

    @property
    def feed(self) -> BufferedWriter:
        return self.call.feed

    @property
    def output(self) -> BufferedReader:
        return self.call.output

    def write(self, data: bytes) -> None:
        self.call.say(data)

    def ended(self) -> int:
        """Its exit code, when it has none of our input left to read."""
        self.call.hang_up()
        return self.call.wait()

    def expect_success(self, doing: str) -> None:
        code = self.ended()
        if code == LOST:
            raise lost(self.host, self.complaint(), doing)
        if code != 0:
            raise CommandFailed(
                f"a command failed on {self.host}", why=self.complaint() or f"exit code {code}"
            )

    def complaint(self) -> str:
        self.call.errors.seek(0)
        return self.call.errors.read().decode(errors="replace").strip()


def read_outcome(output: bytes, errors: str) -> Outcome | None:
    """What stands before the last mark, or None when the connection did not hold so long."""
    framed = re.search(rf"\A(.*)\n{_END} (\d+)\n", output.decode(errors="replace"), re.DOTALL)
    return framed and Outcome(exit_code=int(framed[2]), output=framed[1], errors=errors)
