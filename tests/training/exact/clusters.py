"""The clusters that a campaign's runs are carried to: `here`, and a Slurm booted for them."""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.lab import Lab
from tests.lab.install import unavailable
from tests.needs import torch_env
from tests.real.conftest import PROFILE
from tests.training.exact import harm

from rabaska.remote.ssh_connection import Connection

no_slurm = unavailable  # why there can be none on this computer


class Here:
    place = cluster = "here"
    python = sys.executable

    def path(self, path):
        return Path(path)

    def kill(self, host, pid):
        return harm.kill(pid)


class Slurm:
    """Four nodes, each with processes of its own: a pid means something on its host only."""

    place, cluster = "Slurm", "lab"

    def __init__(self, lab):
        self.lab = lab
        self.python = torch_env.build() / "bin" / "python"

    def path(self, path):
        return self.lab.path(path)

    def kill(self, host, pid):
        inside = self.lab.nodes.pid(host)
        words = ["kill", "-KILL", str(pid)]
        return self.lab.world.run(words, check=False, inside_of=inside).returncode == 0


@contextlib.contextmanager
def here(scratch):
    os.environ["RABASKA_HOME"] = str(scratch / "home")
    yield Here()


@contextlib.contextmanager
def slurm(scratch):
    """A Slurm of one's own over ssh, for as long as it is needed."""
    home = scratch / "home-of-slurm"
    os.environ["RABASKA_HOME"] = str(home)
    with sockets() as folder, Lab() as lab:
        profile = PROFILE.format(config=lab.ssh_config, store="$SCRATCH/rabaska")
        (home / "clusters").mkdir(parents=True)
        (home / "clusters" / "lab.toml").write_text(profile)
        try:
            yield Slurm(lab)
        finally:
            Connection(
                "lab", ("-F", str(lab.ssh_config)), f"{folder}/rabaska-{os.getuid()}"
            ).close()


@contextlib.contextmanager
def sockets():
    """A short place for ssh's sockets: their paths may have about a hundred characters."""
    folder = tempfile.mkdtemp()
    os.environ["XDG_RUNTIME_DIR"] = folder
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
