"""Bash at the other end of a connection: scripts in, their words and bytes out."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter
from time import monotonic

from rabaska.errors import CommandFailed
from rabaska.node.environment_variables import LONGEST
from rabaska.remote import programs, ssh_calls
from rabaska.remote.place import Outcome, closed
from rabaska.remote.ssh_calls import END, Call, Printed, find_end
from rabaska.remote.ssh_connection import Connection
from rabaska.remote.ssh_errors import NotBegun, StartUpFailed, lost, not_begun

_TOO_LONG = "Argument list too long"
_FILES = "~/.bashrc, ~/.bash_profile and ~/.profile"
_PATIENCE = 20  # seconds for the names of variables
# As shells print what they export: `declare -x NAME="…"`, `export NAME='…'`, `typeset -x NAME=…`.
_EXPORTED = re.compile(rb"^(?:declare|export|typeset)(?: -\w+)* (\w+)=", re.MULTILINE)


def refuse_start_up(host: str, happened: str, printed: str) -> None:
    if re.search(r"\bbash: (command )?not found|Command not found", printed):
        raise StartUpFailed(
            f"{host} has no bash on its PATH",
            why=f"the shell there said: {printed}",
            hint=f"`ssh {host} bash --version` must work; add its folder to PATH in the start-up "
            "file of your shell there",
        )
    raise StartUpFailed(
        f"the shell on {host} ends or waits before it runs commands, perhaps in a start-up file",
        why=happened + (f"; its last output was: {printed}" if printed else ""),
        hint=f"look in {_FILES} there for `exit`, `exec`, `read` or something that waits; a file "
        "that is for terminals only begins with `[[ $- == *i* ]] || return`. "
        f"`ssh {host} echo hello` must print hello",
    )


def refuse_variables(connection: Connection, printed: str) -> None:
    """Raise when a variable that is set there is too long for any program to be started."""
    if _TOO_LONG not in printed:
        return
    for name, size in _sizes(connection):
        if size > LONGEST:
            raise StartUpFailed(
                f"the variable {name} is too long on {connection.host}: no program can be started",
                why=f"it has {size:,} bytes, and the system allows {LONGEST:,}; "
                f"the shell said: {printed}",
                hint=f"find {name} in {_FILES} there, and keep its content in a file",
            )


def _sizes(connection: Connection) -> list[tuple[str, int]]:
    """The variables there, the longest first; no program is needed to list them."""
    for shell in ("export -p", "exec bash -lc 'export -p'"):
        printed = _printed(connection, shell)
        places = [(match[1].decode(), match.start()) for match in _EXPORTED.finditer(printed)]
        ends = [start for _, start in places[1:]] + [len(printed)]
        sizes = [(name, end - at) for (name, at), end in zip(places, ends, strict=True)]
        sizes.sort(key=lambda variable: -variable[1])
        if sizes and sizes[0][1] > LONGEST:
            return sizes
    return []


def _printed(connection: Connection, words: str) -> bytes:
    from time import monotonic

    call = Call([*connection.plain_shell(), connection.host, words])
    try:
        call.give_up_at(monotonic() + _PATIENCE)
        return call.answer(b"")
    finally:
        call.end()


# Login shells may print banners: what counts begins with this mark.
_BEGIN = "--rabaska-begins--"
# The script travels on standard input, before whatever it is fed: no quoting can break it,
# whichever shell the login node starts, and no limit of length applies. A zero ends it.
_SCRIPT = '( IFS= read -rd "" script; eval "$script" ); code=$?'
_ENDED = f"{{ echo; echo {END} $code; }}"

LOST = 255  # how ssh ends when it was cut off, and no command of ours


@dataclass(frozen=True)
class Shell:
    """Scripts run under `bash -lc`, where site modules and storage variables are defined."""

    connection: Connection
    patience: float = 180  # seconds for start-up files; modules on a busy disk take their time

    def run(self, script: str, *, feed: bytes = b"", again: str = "") -> Outcome:
        """Run `script`; if the connection breaks it may have done part of its work, so it is
        not for us to repeat it.

        A question that will be asked `again` on some occasion gets a head start then; it has
        lines that each ask for themselves, in any order.
        """
        words = self._words(f"{_SCRIPT}; {_ENDED}")
        with self._bash(words, script) as command:
            if again and feed != command.call.sent:  # else it is noted so
                ssh_calls.note(again, words, script, self.connection.folder, feed)
            output = command.call.answer(ssh_calls.unsent(feed, command.call.sent), framed=True)
            outcome = read_outcome(output, command.complaint())
            if outcome is None:
                raise lost(command.host, command.complaint())
        if outcome.exit_code != 0:
            refuse_variables(self.connection, outcome.errors)
        return outcome

    def attach(self, script: str, *, terminal: bool) -> int:
        """Run `script` with our own input and output; the script itself travels as an argument."""
        import base64

        self.connection.open()
        encoded = base64.b64encode(script.encode()).decode()
        private = closed(self.connection.umask)
        reading = f"bash -lc '{private}; eval \"$(echo {encoded} | base64 -d)\"'"
        command = self.connection.command("-tt" if terminal else "-T", self.connection.host)
        return programs.run([*command, reading]).returncode

    def stream(self, script: str, *, feed: bytes = b"") -> Iterator[bytes]:
        with self.started(script) as command:
            command.write(feed)
            command.call.hang_up()
            while chunk := command.output.read1(65536):
                yield chunk
            command.expect_success("what was being read")

    @contextmanager
    def started(self, script: str) -> Iterator["StartedCommand"]:
        """A script that runs, with its standard input and output open; it ends with the block."""
        with self._bash(self._words(f"{_SCRIPT}; {_ENDED} >&2; exit $code"), script) as command:
            yield command

    def _words(self, reading: str) -> list[str]:
        shell = [*self.connection.plain_shell(), self.connection.host]
        return [*shell, f"bash -lc '{closed(self.connection.umask)}; echo {_BEGIN}; {reading}'"]

    @contextmanager
    def _bash(self, words: list[str], script: str) -> Iterator["StartedCommand"]:
        """A bash that was handed its script and may be fed."""
        command = self._begun_ahead(words, script) or self._begin(words, script)
        try:
            yield command
        finally:
            command.call.end()

    def _begun_ahead(self, words: list[str], script: str) -> "StartedCommand | None":
        call = ssh_calls.adopted(words, script, self.connection.folder)
        try:
            return self._when_ready(call) if call else None
        except NotBegun:
            return None

    def _begin(self, words: list[str], script: str) -> "StartedCommand":
        """Where the connection was dead, it is made again."""
        self.connection.open()
        try:
            command = self._when_ready(Call(words))
        except NotBegun:
            self.connection.open_again()
            command = self._when_ready(Call(words))
        command.call.send(ssh_calls.script_input(script))
        return command

    def _when_ready(self, call: Call) -> "StartedCommand":
        """The call as soon as its bash gives a sign of life.

        Login shells may print a banner first. Only after our own line the script is handed
        over: what did not say it did not get the script either, and may be tried again.
        """
        command = StartedCommand(call, self.connection.host)
        call.give_up_at(monotonic() + self.patience)
        line = b""
        try:
            for line in call.output:
                if line.rstrip().endswith(_BEGIN.encode()):
                    call.give_up_at(None)
                    return command
            self._refuse_silence(call, line.decode(errors="replace").strip())
            raise not_begun(command.host, command.complaint())
        except BaseException:  # Ctrl-C too
            call.end()
            raise

    def _refuse_silence(self, call: Call, last: str) -> None:
        """Raise, unless it was ssh that failed; `last` is the last line that was printed."""
        late = f"it had not started after {self.patience:g} s" if call.gave_up else ""
        code = LOST if late else call.wait()
        errors = call.complaint()
        # ssh itself says something when it fails; a shell that ends need not.
        if late or code != LOST or (not errors and self.connection.is_open()):
            refuse_variables(self.connection, errors)
            happened = late or f"it ended with exit code {code}"
            refuse_start_up(self.connection.host, happened, errors or last)


@dataclass(frozen=True)
class StartedCommand:
    """A script that was begun at a host."""

    call: Call
    host: str

    @property
    def feed(self) -> BufferedWriter:
        return self.call.feed

    @property
    def output(self) -> "BufferedReader[Printed]":
        return self.call.output

    def write(self, data: bytes) -> None:
        self.call.send(data)

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
        return self.call.complaint()


def read_outcome(output: bytes, errors: str) -> Outcome | None:
    """What stands before the last mark, or None when the connection did not hold so long."""
    text, code = find_end(output)
    if code is None:
        return None
    return Outcome(exit_code=code, output=text.decode(errors="replace"), errors=errors)
