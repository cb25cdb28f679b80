"""A machine inside the machine: its own root, processes and network, and no trace when it ends."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.needs.packages import SEARCHED

from . import keeper
from .site import Storage

ENVIRONMENT = {"PATH": SEARCHED, "LANG": "C.UTF-8", "HOME": "/root"}
# These stand between a process we start and the program we mean; signals stop at them.
DOORKEEPERS = {"nsenter", "unshare"}

# Fills the storage $0 but for $1 bytes; again and again, because others may write to it meanwhile.
FILL = """
    while free=$(($(stat -f -c '%a * %S' "$0") - $1)); [ $free -gt 0 ]; do
        fallocate -l $free "$0/filler" && break
    done
"""


class LabBroken(Exception):
    """The lab itself failed; the message holds the end of the log that tells why."""


@dataclass(frozen=True)
class Daemon:
    """A program of the lab that was started and goes on."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def pid(self) -> int:
        """The process id of the program itself, as this machine counts."""
        pid = self.process.pid
        while self.running:
            if command_name(pid) not in DOORKEEPERS:
                return pid
            inner = children(pid)
            if inner:
                pid = inner[0]
            else:
                time.sleep(0.001)
        raise LabBroken(f"{self.name} is not running\n{self.last_words}")

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    @property
    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


class World:
    """The namespaces of one lab. `storage` says which folders are mounted, and their limits."""

    def __init__(self, storage: Mapping[str, Storage]) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="rabaska-lab-"))
        self.base.chmod(0o755)
        self.name = self.base.name
        for folder in ("world", "log", "storage"):
            (self.base / folder).mkdir()
        self.cgroups = bool(keeper.controllers())
        self._started: list[subprocess.Popen[bytes]] = []
        self._keeper = self._start_keeper(storage)
        self.pid = self._first_pid()

    def path(self, inside: str) -> Path:
        """Where this machine sees a path of the lab. Never resolve it: its root is a magic link."""
        return Path(f"/proc/{self.pid}/root") / inside.lstrip("/")

    def write(self, inside: str, text: str, *, mode: int = 0o644) -> None:
        file = self.path(inside)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def command(self, words: Sequence[str], *, inside_of: int = 0) -> list[str]:
        """`words` as a command that enters the lab, or the namespaces of one process of it."""
        return ["nsenter", "-t", str(inside_of or self.pid), "-m", "-u", "-i", "-n", "-p", *words]

    def run(
        self,
        words: Sequence[str],
        *,
        check: bool = True,
        timeout: float = 60,
        inside_of: int = 0,
        stdin: str = "",
    ) -> subprocess.CompletedProcess[str]:
        outcome = subprocess.run(
            self.command(words, inside_of=inside_of),
            check=False,
            env=ENVIRONMENT,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if check and outcome.returncode != 0:
            told = (outcome.stderr + outcome.stdout).strip()
            raise LabBroken(f"{' '.join(words)} gave {outcome.returncode}: {told}")
        return outcome

    def start(
        self,
        name: str,
        words: Sequence[str],
        *,
        environment: Mapping[str, str] = ENVIRONMENT,
        inside_of: int = 0,
        pass_fds: Sequence[int] = (),
    ) -> Daemon:
        """Start a program that goes on; what it prints is in log/<name>.log."""
        log = self.base / "log" / f"{name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                self.command(words, inside_of=inside_of),
                env={**ENVIRONMENT, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        self._started.append(process)
        return Daemon(name, process, log)

    def listens(self, port: int) -> bool:
        """Whether a program outside of the nodes waits for connections on this port."""
        table = Path(f"/proc/{self.pid}/net/tcp").read_text().splitlines()[1:]
        # Of each line: the local address as hexadecimal address:port, and 0A for "listening".
        return any(
            line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in table
        )

    def end(self) -> None:
        """End every process of the lab and wait until nothing of it is left."""
        if self._keeper.stdin and not self._keeper.stdin.closed:
            self._keeper.stdin.close()
        self._keeper.wait(30)
        for process in self._started:
            process.send_signal(signal.SIGCONT)  # a test may have frozen it
            process.wait(10)
        if self._keeper.stdout:
            self._keeper.stdout.close()

    def _start_keeper(self, storage: Mapping[str, Storage]) -> subprocess.Popen[bytes]:
        words = [str(self.base), self.name]
        for inside, limits in storage.items():
            on_disk = self.base / "storage" / inside.strip("/").replace("/", "-")
            on_disk.mkdir()
            words += [inside, str(on_disk), limits.mount_options]
        return subprocess.Popen(
            # It needs nothing but the standard library, so the tests' own paths are left out.
            [sys.executable, "-I", keeper.__file__, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def _first_pid(self) -> int:
        assert self._keeper.stdout is not None
        line = self._keeper.stdout.readline()
        if not line.strip().isdigit():
            self.end()
            raise LabBroken("the lab's first process did not start; what it said is above")
        return int(line)


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(pid: int) -> list[int]:
    """The children of a process, their children, and so on."""
    found = children(pid)
    for child in list(found):
        found += descendants(child)
    return found


def command_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""
