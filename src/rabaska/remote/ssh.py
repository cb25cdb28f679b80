"""A login node as a place: the system's OpenSSH, one shared connection, bash at the other end."""

import os
import posixpath
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import cast

from rabaska.errors import CommandFailed, Unreachable
from rabaska.node import files
from rabaska.remote.place import Moved, Outcome, quoted

# Login shells may print banners: what counts stands between these two lines.
_BEGIN = "--rabaska-begins--"
_END = "--rabaska-ends--"

_KEEP_ALIVE = ("-o", "ServerAliveInterval=30", "-o", "ServerAliveCountMax=4")


@dataclass(frozen=True)
class Connection:
    """One shared connection to a host; opened when first needed, and again when it was lost."""

    host: str
    options: tuple[str, ...] = ()  # e.g. ("-F", "other_config")
    sockets: Path = field(default_factory=lambda: socket_folder())  # noqa: PLW0108 - defined below

    def command(self, *words: str) -> list[str]:
        """ssh over the shared connection; it never prompts and never opens another."""
        shared = ("-o", "ControlMaster=no", "-o", "BatchMode=yes")
        return ["ssh", *self.options, *self._socket(), *shared, *words]

    def open(self) -> None:
        """Make sure that the shared connection lives; prompts reach the user's terminal."""
        if self.is_open():
            return
        persist = ("-o", "ControlMaster=auto", "-o", "ControlPersist=30m")
        words = ["ssh", *self.options, *self._socket(), *persist, *_KEEP_ALIVE, "-N", "-f"]
        done = subprocess.run([*words, self.host], stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise refusal(self.host, done.stderr.decode(errors="replace"))

    def is_open(self) -> bool:
        # OpenSSH silently opens a full connection on a stale socket, so we ask first.
        check = ["ssh", *self.options, *self._socket(), "-O", "check", self.host]
        return subprocess.run(check, capture_output=True, check=False).returncode == 0

    def close(self) -> None:
        close = ["ssh", *self.options, *self._socket(), "-O", "exit", self.host]
        subprocess.run(close, capture_output=True, check=False)

    def _socket(self) -> tuple[str, ...]:
        return ("-o", f"ControlPath={self.sockets}/%C")


@dataclass(frozen=True)
class Ssh:
    """Scripts run under `bash -lc`, where site modules and storage variables are defined."""

    connection: Connection

    def run(self, script: str, *, feed: bytes = b"") -> Outcome:
        """Run `script`; a connection lost before it began is made again, once."""
        for attempt in (1, 2):
            self.connection.open()
            done = subprocess.run(
                self._bash(script), input=script.encode() + feed, capture_output=True, check=False
            )
            outcome = read_outcome(done.stdout, done.stderr)
            if outcome is not None:
                return outcome
            began = _BEGIN.encode() in done.stdout
            if began or attempt == 2:
                raise refusal(self.connection.host, done.stderr.decode(errors="replace"), began)
        raise CommandFailed(f"{self.connection.host} did not answer")

    def stream(self, script: str) -> Iterator[bytes]:
        self.connection.open()
        command = self._bash(script, framed=False)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            if process.stdin:
                process.stdin.write(script.encode())
                process.stdin.close()
            printed = cast(BufferedReader, process.stdout)
            try:
                while chunk := printed.read1(65536):
                    yield chunk
            finally:
                process.terminate()

    def send(self, source: Path, target: str, moved: Moved | None = None) -> None:
        """Send one small file."""
        partial = quoted([f"{target}{files.PARTIAL}"])
        folder, final = quoted([posixpath.dirname(target)]), quoted([target])
        script = f"mkdir -p {folder} && cat > {partial} && mv {partial} {final}"
        outcome = self.run(script, feed=source.read_bytes())
        if outcome.exit_code != 0:
            raise CommandFailed(f"{source.name} could not be sent", why=outcome.complaint)

    def bring(
        self,
        source: str,
        target: Path,
        *,
        leave_out: Sequence[str] = (),
        moved: Moved | None = None,
    ) -> int:
        raise CommandFailed("not yet")

    def _bash(self, script: str, *, framed: bool = True) -> list[str]:
        """The script travels on standard input, before whatever it is fed: no quoting can
        break it, whichever shell the login node starts, and no limit of length applies."""
        reading = f'eval "$(head -c {len(script.encode())})"'
        if framed:
            reading = f"echo {_BEGIN}; ( {reading} ); ended=$?; echo; echo {_END} $ended"
        return self.connection.command(self.connection.host, f"bash -lc '{reading}'")


def read_outcome(output: bytes, errors: bytes) -> Outcome | None:
    """What stands between the two marks, or None when the connection did not hold so long."""
    text = output.decode(errors="replace")
    framed = re.search(rf"{_BEGIN}\n(.*)\n{_END} (\d+)\n", text, re.DOTALL)
    if not framed:
        return None
    return Outcome(
        exit_code=int(framed[2]), output=framed[1], errors=errors.decode(errors="replace")
    )


def socket_folder() -> Path:
    """A short private folder: the path of a socket may have about 100 characters."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(base) / f"rabaska-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise Unreachable(
            f"{folder} is not private",
            why="somebody else could use the connections kept there",
            hint=f"remove it, or `chmod 700 {folder}`",
        )
    return folder


_REFUSALS: Sequence[tuple[str, str, str]] = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed",
        "the key of {host} is not the one this computer knows",
        "if the site announced a new key, `ssh-keygen -R {host}` forgets the old one; "
        "if not, ask the site before you go on",
    ),
    (
        r"Could not resolve hostname|Name or service not known",
        "there is no host called {host}",
        "check the name, and whether the site asks for a VPN",
    ),
    (
        r"Connection refused|No route to host|Network is unreachable|timed out|timeout",
        "{host} does not answer",
        "check your network or VPN, and the site's status page",
    ),
    (
        r"keyboard-interactive|Duo|verification code|passcode|two-factor|MFA",
        "{host} asks for a second factor",
        "run `ssh {host}` once in this terminal and answer it; the connection is then shared",
    ),
    (
        r"Permission denied|Too many authentication failures",
        "{host} did not let you in",
        "`ssh {host}` must work without rabaska first: check user name and key",
    ),
)


def refusal(host: str, said: str, began: bool = False) -> Unreachable:
    """What ssh's own words mean; they are quoted, never paraphrased."""
    for pattern, what, hint in _REFUSALS:
        if re.search(pattern, said, re.IGNORECASE):
            return Unreachable(
                what.format(host=host), why=f"ssh said: {said.strip()}", hint=hint.format(host=host)
            )
    what = "was lost in the middle of a command" if began else "could not be made"
    why = f"ssh said: {said.strip()}" if said.strip() else ""
    return Unreachable(
        f"the connection to {host} {what}", why=why, hint="the same command can be given again"
    )
