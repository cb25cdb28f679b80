"""One shared ssh connection to a host: opened once, used by everything, made again when lost."""

import fcntl
import os
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO

from rabaska.errors import Unreachable
from rabaska.node import private_files
from rabaska.remote import programs
from rabaska.remote.ssh_errors import NoAnswer, not_begun


def private_socket_folder() -> str:
    """The first of the usual places that is ours alone.

    Short, too: the path of a socket may have about 100 characters.
    """
    refused = ""
    for folder in _places():
        why = private_files.claim(folder)
        if not why:
            return folder
        refused = refused or why
    raise Unreachable(
        "there is no private folder for ssh connections",
        why=f"{refused}; other users could use the connections in it",
        hint="set XDG_RUNTIME_DIR to a folder of your own",
    )


def _places() -> list[str]:
    # Not the folder for temporary files: on macOS its name alone is too long.
    base = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"  # noqa: S108 - looked at before it is used
    name = f"rabaska-{os.getuid()}"
    return [f"{base}/{name}", os.path.expanduser(f"~/.{name}")]


def is_listening(folder: str) -> bool:
    """Whether a socket in `folder` is alive: as good as `ssh -O check`, without a process.

    OpenSSH silently opens a full connection where the socket is stale, so we ask first.
    """
    return any(_listens(f"{folder}/{name}") for name in os.listdir(folder))


def _listens(path: str) -> bool:
    from _socket import AF_UNIX, socket  # what is around it takes longer than the question

    line = socket(AF_UNIX)
    try:
        line.settimeout(5)
        line.connect(path)
    except OSError:
        return False
    finally:
        line.close()
    return True


# A silent line is given up after a minute; a firewall that forgets idle ones is kept awake.
_KEEP_ALIVE = ("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4")
_PERSIST = ("-o", "ControlMaster=auto", "-o", "ControlPersist=30m")
_PATIENCE = ("-o", "ConnectTimeout=60")  # long enough to answer a jump host's second factor

_NO_FORWARDING = ("-o", "ClearAllForwardings=yes")
# Whoever is root on the login node could use the keys of a forwarded agent, or read the screen.
# As flags, which win over every file and every other option.
_NOTHING_LENT = ("-a", "-x")
_PAUSES = (1, 2, 4, 8, 15)  # seconds between attempts to reach a host that was there a moment ago


_screens: list[object] = []  # that show something else than prompts


@contextmanager
def without_prompts() -> Iterator[None]:
    """No ssh asks for anything meanwhile, nor writes to the terminal: it shows something else."""
    screen = object()
    _screens.append(screen)
    try:
        yield
    finally:
        _screens.remove(screen)


@dataclass(frozen=True)
class Connection:
    """A host as ssh knows it, and the folder where its socket is kept."""

    host: str
    options: tuple[str, ...] = ()  # e.g. ("-F", "other_config")
    sockets: str = field(default_factory=private_socket_folder)
    umask: str = "077"  # of what runs at the other end

    def command(self, *words: str) -> list[str]:
        """ssh over the shared connection; it never prompts and never opens another for others."""
        return [*self.shell(), *words]

    def shell(self) -> list[str]:
        """The words before the host, for programs that start ssh themselves."""
        shared = ("-o", "ControlMaster=no", "-o", "BatchMode=yes")
        return ["ssh", *self.options, *_NOTHING_LENT, *self._socket(), *shared]

    def plain_shell(self) -> list[str]:
        """The same for bytes that nobody may change: no terminal, no forwarded ports, whatever
        ~/.ssh/config wishes for the sessions of people."""
        return [*self.shell(), "-T", *_NO_FORWARDING]

    def open(self) -> None:
        """Make sure that the shared connection lives; prompts reach the user's terminal."""
        if not is_listening(self.folder):
            self.open_again()

    def open_again(self) -> None:
        """The same when a command just failed, so the socket's word is not enough."""
        # Two that connect at once would leave a connection that nobody uses and nobody ends;
        # and the second would ask again what the user is answering to the first.
        with open(f"{self.folder}.lock", "w") as lock:
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
        return self._control("check")

    def close(self) -> None:
        self._control("exit")

    def _control(self, word: str) -> bool:
        """Say a word to the ssh that keeps the connection; whether it was heard."""
        words = ["ssh", *self.options, *self._socket(), "-O", word, self.host]
        return programs.run(words, capture_output=True).returncode == 0

    def _connect(self) -> None:
        words = ["ssh", *self.options, *_NOTHING_LENT, *self._socket(), *_PERSIST, *_KEEP_ALIVE]
        words += [*_PATIENCE, *_NO_FORWARDING]
        words += ["-o", "BatchMode=yes"] if _screens else []
        # -f: ssh goes to the background once it is let in, and Ctrl-C no longer reaches it there.
        code, errors = _connected([*words, "-N", "-f", self.host])
        if code != 0:
            raise not_begun(self.host, errors)

    def _socket(self) -> tuple[str, ...]:
        # %C stands for user, host, port and jump host, as ~/.ssh/config has them at the moment.
        return ("-o", f"ControlPath={self.folder}/%C")

    @property
    def folder(self) -> str:
        """One for each way to spell the host, so that its socket is found without asking ssh."""
        spelled = "\0".join((self.host, *self.options))
        folder = f"{self.sockets}/{zlib.crc32(spelled.encode()):08x}"
        with suppress(FileExistsError):
            os.mkdir(folder, mode=0o700)
        return folder


def _connected(words: list[str]) -> tuple[int, str]:
    """Run ssh until it is connected; its exit code and what it said on the way.

    Prompts go to the terminal by themselves, but what explains them (the choices of a second
    factor, the site's banner) comes on standard error: it is shown as it comes, and kept.
    """
    from subprocess import DEVNULL, PIPE  # not for those who find the connection open

    errors: list[bytes] = []
    # An old ssh keeps our standard output in the background, and `rabaska … | less` would not end.
    process = programs.started(words, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
    # An ssh in the background may keep its end open, so nobody waits for the end of the words.
    reader = threading.Thread(target=_copy_errors, args=(process.stderr, errors), daemon=True)
    reader.start()
    try:
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    reader.join(1 if code else 0.01)
    return code, b"".join(errors).decode(errors="replace")


def _copy_errors(stream: IO[bytes], chunks: list[bytes]) -> None:
    with stream:
        while chunk := os.read(stream.fileno(), 4096):
            chunks.append(chunk)
            if sys.stderr.isatty() and not _screens:
                os.write(sys.stderr.fileno(), chunk)
