"""A laptop with a project, and a real Slurm cluster called `lab` at the other end of ssh."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.lab import Lab
from tests.lab.fixtures import lab, make_lab
from tests.voyages.conftest import TRAIN, User

from rabaska.remote.ssh_connection import Connection

__all__ = ["lab", "make_lab", "make_voyager", "voyager"]

PROFILE = """
title = "the lab"
scheduler = "slurm"

[reach]
host = "lab"
options = ["-F", "{config}"]

[storage]
store = "{store}"
"""
COMMAND = '"python3 train.py --data {data} --output {output} --resume {checkpoint}"'


@dataclass(frozen=True)
class Voyager(User):
    """A user whose cluster `lab` is a lab, with a store and ssh connections of their own."""

    lab: Lab
    sockets: Path

    @property
    def environment(self):
        return {**super().environment, "XDG_RUNTIME_DIR": str(self.sockets)}

    @property
    def store(self):
        """Our folder on the cluster, as the cluster calls it; `lab.path` leads there."""
        return f"{self.lab.shared}/{self.home.parent.name}"

    @property
    def gate(self):
        """What a program that was started with `--gate` waits for, as the cluster calls it."""
        return f"{self.lab.home}/{self.home.parent.name}.gate"

    def let_go(self):
        self.lab.path(self.gate).touch()

    @property
    def profile(self):
        return self.home / "clusters" / "lab.toml"

    @property
    def connection(self):
        """The connection that rabaska shares."""
        folder = self.sockets / f"rabaska-{os.getuid()}"
        return Connection("lab", ("-F", str(self.lab.ssh_config)), str(folder))

    def ssh(self, *words):
        """ssh as rabaska uses it, over the connection it shares: `voyager.ssh("lab", "squeue")`."""
        command = self.connection.command(*words)
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def settings(self, **changes):
        """As for `here`, with the Python that the lab's nodes have."""
        super().settings(**{"command": COMMAND, "walltime": '"2m"', **changes})

    def add_settings(self, text):
        with (self.project / "rabaska.toml").open("a") as stream:
            stream.write(f"\n{text}")

    def run(self, *words):
        """Start a run on the lab and return its name."""
        return self.types("run", "--on", "lab", *words).output.strip()

    def leave(self):
        """No test leaves a job or a connection behind."""
        self.cancel_jobs()
        if Path(self.connection.sockets).exists():
            self.connection.close()
        shutil.rmtree(self.sockets, ignore_errors=True)

    def cancel_jobs(self):
        self.lab.run_as_user(["scancel", "--user", self.lab.user], check=False)


@pytest.fixture
def make_voyager(tmp_path):
    """Makes the user of a lab: `make_voyager(make_lab(warp=60))`."""
    made = []

    def make(running):
        project = tmp_path / "project"
        (project / "numbers").mkdir(parents=True)
        for number in range(3):
            (project / "numbers" / f"{number}.txt").write_text(str(number))
        # The path of a socket may have about a hundred characters; tmp_path has them already.
        someone = Voyager(project, tmp_path / "home", running, Path(tempfile.mkdtemp()))
        someone.profile.parent.mkdir(parents=True)
        store = f"$SCRATCH/{tmp_path.name}"
        someone.profile.write_text(PROFILE.format(config=running.ssh_config, store=store))
        someone.write("train.py", TRAIN)
        someone.settings()
        made.append(someone)
        return someone

    yield make
    for someone in made:
        someone.leave()


@pytest.fixture
def voyager(lab, make_voyager):
    return make_voyager(lab)
