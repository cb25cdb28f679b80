"""A queue of its own for each test, worked by the same words that a cluster would be sent."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rabaska.node import processes

WORDS = (
    sys.executable,
    "-c",
    "import sys; from rabaska.node.here.commands import main; sys.exit(main(sys.argv[2:]))",
    "here",
)


def until(happened: Callable[[], object], what: str = "") -> None:
    """Wait for something that must happen, and name it when it does not."""
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, f"it never happened: {what or happened}"
        time.sleep(0.05)


class Here:
    """One queue, and the folder in which its jobs work."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.queue = folder / "queue"
        self.variables = {key: value for key, value in os.environ.items() if "RABASKA" not in key}
        self.variables["TMPDIR"] = str(folder / "tmp")
        (folder / "tmp").mkdir()

    def words(self, command: str) -> list[str]:
        return [*WORDS, command, "--queue", str(self.queue)]

    def run(self, *words: object) -> "subprocess.CompletedProcess[str]":
        command, *rest = map(str, words)
        return subprocess.run(
            [*self.words(command), *rest],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def script(self, text: str, options: str = "") -> Path:
        path = self.folder / f"script-{time.monotonic_ns()}.sh"
        path.write_text(f"#!/bin/bash\n#HERE --grace=2 {options}\n{text}\n")
        return path

    def submit(self, text: str, options: str = "") -> int:
        done = self.run("submit", self.script(text, options))
        assert done.returncode == 0, done.stderr
        return int(done.stdout.removeprefix("here job "))

    def status(self, *jobs: object) -> Mapping[str, list[str]]:
        """The fields after the id of each line, by id."""
        lines = self.run("status", *jobs).stdout.splitlines()
        return {line.split("|")[1]: line.split("|")[2:] for line in lines}

    def states(self, *jobs: object) -> dict[str, str]:
        return {element: fields[0] for element, fields in self.status(*jobs).items()}

    def state(self, job: int, element: int = 1) -> str:
        return self.states(job)[f"{job}_{element}"]

    def active(self) -> list[str]:
        """The jobs that are not over, seen without a command that would tidy up first."""
        folder = self.queue / "active"
        return sorted(name.name for name in folder.iterdir()) if folder.exists() else []

    def wait(self) -> None:
        until(lambda: not self.active(), "the queue is empty")

    def keeper(self, job: int) -> int:
        path = self.queue / "jobs" / str(job) / "keeper"
        until(path.read_text, "the keeper wrote its pid")
        return int(path.read_text())

    def kill_keeper(self, job: int) -> None:
        pid = self.keeper(job)
        os.kill(pid, signal.SIGKILL)
        until(lambda: processes.start_id(pid) is None, "the keeper died")

    def local_folders(self) -> list[Path]:
        return list((self.folder / "tmp").iterdir())

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []
