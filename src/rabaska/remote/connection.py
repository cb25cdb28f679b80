"""One shared ssh connection to a host: opened once, used by everything, made again when lost."""

import fcntl
import hashlib
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from rabaska.errors import Unreachable
from rabaska.remote.refusals import NoAnswer, not_begun

# A silent line is given up after a minute; a firewall that forgets idle ones is kept awake.
_KEEP_ALIVE = ("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4")
_PERSIST = ("-o", "ControlMaster=auto", "-o", "ControlPersist=30m")
_PATIENCE = ("-o", "ConnectTimeout=60")  # long enough to answer a jump host's second factor

_NO_FORWARDING = ("-o", "ClearAllForwardings=yes")
_PAUSES = (1, 2, 4, 8, 15)  # seconds between attempts to reach a host that was there a moment ago


@dataclass(frozen=True)
class Connection:
    host: str
    options: tuple[str, ...] = ()  # e.g. ("-F", "other_config")
    sockets: Path = field(default_factory=lambda: socket_folder())  # noqa: PLW0108 - defined below

    def command(self, *words: str) -> list[str]:
        """ssh over the shared connection; it never prompts and never opens another for others."""
        return [*self.shell(), *words]

    def shell(self) -> list[str]:
        """The words before the host, for programs that start ssh themselves."""
        shared = ("-o", "ControlMaster=no", "-o", "BatchMode=yes")
        return ["ssh", *self.options, *self._socket(), *shared]

    def plain_shell(self) -> list[str]:
        """The same for bytes that nobody may change: no terminal, no forwarded ports, whatever
        ~/.ssh/config wishes for the sessions of people."""
        return [*self.shell(), "-T", *_NO_FORWARDING]

    def open(self) -> None:
        """Make sure that the shared connection lives; prompts reach the user's terminal."""
        if not self._answers():
            self.open_again()

    def open_again(self) -> None:
        """The same when a command just failed, so the socket's word is not enough."""
        # Two that connect at once would leave a connection that nobody uses and nobody ends;
        # and the second would ask again what the user is answering to the first.
        with self._folder().with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.is_open():
                self._connect()

    def reopen(self) -> None:
        """The same after it broke in the middle of something long: a laptop that was asleep, or
        in a train, is given time to find its network again."""
        for pause in _PAUSES:
            try:
                return self.open_again()
            except NoAnswer:
                time.sleep(pause)
        return self.open_again()

    def is_open(self) -> bool:
        check = ["ssh", *self.options, *self._socket(), "-O", "check", self.host]
        return subprocess.run(check, capture_output=True, check=False).returncode == 0

    def close(self) -> None:
        close = ["ssh", *self.options, *self._socket(), "-O", "exit", self.host]
        subprocess.run(close, capture_output=True, check=False)

    def _connect(self) -> None:
        words = ["ssh", *self.options, *self._socket(), *_PERSIST, *_KEEP_ALIVE]
        words += [*_PATIENCE, *_NO_FORWARDING]
        # -f: ssh goes to the background once it is let in, and Ctrl-C no longer reaches it there.
        code, said = _listened([*words, "-N", "-f", self.host])
        if code != 0:
            raise not_begun(self.host, said)

    def _answers(self) -> bool:
        """Whether somebody listens at our socket: as good as `ssh -O check`, without a process.

        OpenSSH silently opens a full connection where the socket is stale, so we ask first.
        """
        return any(_listens(path) for path in self._folder().iterdir())

    def _socket(self) -> tuple[str, ...]:
        # %C stands for user, host, port and jump host, as ~/.ssh/config has them at the moment.
        return ("-o", f"ControlPath={self._folder()}/%C")

    def _folder(self) -> Path:
        """One for each way to spell the host, so that its socket is found without asking ssh."""
        spelled = "\0".join((self.host, *self.options))
        folder = self.sockets / hashlib.sha256(spelled.encode()).hexdigest()[:8]
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(5)
        try:
            line.connect(str(path))
        except OSError:
            return False
    return True


def _listened(words: list[str]) -> tuple[int, str]:
    """Run ssh until it is connected; its exit code and what it said on the way.

    Prompts go to the terminal by themselves, but what explains them (the choices of a second
    factor, the site's banner) comes on standard error: it is shown as it comes, and kept.
    """
    said: list[bytes] = []
    # An old ssh keeps our standard output in the background, and `rabaska … | less` would not end.
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    # An ssh in the background may keep its end open, so nobody waits for the end of the words.
    hearing = threading.Thread(target=_hear, args=(process.stderr, said), daemon=True)
    hearing.start()
    try:
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    hearing.join(1 if code else 0.01)
    return code, b"".join(said).decode(errors="replace")


def _hear(words: IO[bytes], said: list[bytes]) -> None:
    with words:
        while chunk := os.read(words.fileno(), 4096):
            said.append(chunk)
            if sys.stderr.isatty():
                os.write(sys.stderr.fileno(), chunk)


def socket_folder() -> Path:
    """A short private folder: the path of a socket may have about 100 characters."""
    # Not the folder for temporary files: on macOS its name alone is too long.
    base = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"  # noqa: S108 - checked below
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
