"""Readers of our pages: they do what a page says, on this computer or with a cluster as well."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from pages import Step
from tests.lab import Lab

BIN = Path(sys.executable).parent
HOST = "login.campus.example"  # the cluster that our pages tell of


class Reader:
    """Somebody who types what a page says, in a copy of the example it starts from."""

    def __init__(self, example: Path, folder: Path) -> None:
        self.parent = folder
        self.python = ""  # what was typed into Python so far: names live on from block to block
        self.project = folder / example.name
        ignored = shutil.ignore_patterns("data", "output", "results", "__pycache__")
        shutil.copytree(example, self.project, ignore=ignored)
        self.environment = {
            **os.environ,
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "RABASKA_HOME": str(folder / ".local" / "share" / "rabaska"),
            "OMP_NUM_THREADS": "1",
        }

    def follows(self, step: Step) -> tuple[int, str]:
        """Do what the page asks for; the exit code, and what was printed."""
        if not step.file:
            return self.types(step)
        with (self.project / step.file).open("a" if step.adds else "w") as file:
            file.write(step.command)
        return 0, ""

    def types(self, step: Step) -> tuple[int, str]:
        command = ["bash", "-c", step.command]
        if step.language == "python":
            self.python += step.command
            command = [sys.executable, "-c", self.python]
        done = subprocess.run(
            command, cwd=self.project, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False,
        )  # fmt: skip
        printed = done.stdout.decode("utf-8", "replace")
        for mine, documented in ((str(self.parent), "/home/ada"), (socket.gethostname(), "laptop")):
            printed = printed.replace(mine, documented)
        return done.returncode, printed

    def leave(self) -> None:
        """Let no job of a page outlive its test."""
        _, told = self.types(Step("rabaska status --all --json 2>/dev/null"))
        for run in json.loads(told or "[]"):
            self.types(Step(f"rabaska cancel {run['name']}"))


class ReaderWithCluster(Reader):
    """One whose `ssh` knows a cluster, as by ~/.ssh/config, which tests must not change."""

    def __init__(self, example: Path, folder: Path, lab: Lab) -> None:
        super().__init__(example, folder)
        # The path of a socket may have about a hundred characters; `folder` has them already.
        self.sockets = Path(tempfile.mkdtemp())
        config = folder / "ssh_config"
        known = lab.ssh_config.read_text().replace("Host lab\n", f"Host {HOST}\n")
        config.write_text(known)
        ssh = folder / "bin" / "ssh"
        ssh.parent.mkdir()
        ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F "{config}" "$@"\n')
        ssh.chmod(0o755)
        path = f"{ssh.parent}{os.pathsep}{self.environment['PATH']}"
        self.environment |= {"PATH": path, "XDG_RUNTIME_DIR": str(self.sockets)}

    def leave(self) -> None:
        """The lab ends with its jobs; connections are ours."""
        for path in self.sockets.glob("*/*/*"):
            self.types(Step(f"ssh -S {path} -O exit {HOST}"))
        shutil.rmtree(self.sockets)
