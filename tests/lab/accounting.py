"""slurmdbd on a MariaDB of its own, so that `sacct` answers and accounts are enforced."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from .site import Site
from .slurmconf import slurmdbd_conf
from .world import Daemon, LabBroken, World

# An empty database takes seconds to make and 0.2 s to copy, so one is kept.
CACHE = Path("/var/cache/rabaska-lab/mariadb")
DATA = "/var/lib/lab-mariadb"
SOCKET = "/run/mysqld/mysqld.sock"
# Small files: they are copied at each boot, and a lab never holds more than a few jobs.
SMALL = ["--innodb-log-file-size=4M", "--innodb-buffer-pool-size=16M"]


def start_accounting(world: World, site: Site) -> None:
    """Start the database and slurmdbd, and make the user's account known to them."""
    shutil.copytree(empty_database(), world.path(DATA), copy_function=shutil.copy2)
    world.run(["chown", "-R", "mysql:mysql", DATA])
    world.run(["install", "-d", "-o", "mysql", str(Path(SOCKET).parent)])
    words = ["mariadbd", "--no-defaults", "--user=mysql", f"--datadir={DATA}", *SMALL]
    # Without passwords: nobody but the lab's own user could reach it.
    words += [f"--socket={SOCKET}", "--skip-networking", "--skip-grant-tables"]
    database = world.start("mariadbd", words)
    _wait_for(world.path(SOCKET).exists, database)
    world.write("/etc/slurm/slurmdbd.conf", slurmdbd_conf(), mode=0o600)
    slurmdbd = world.start("slurmdbd", ["slurmdbd", "-D"])
    _wait_for(lambda: _answers(world), slurmdbd)
    for words in (
        ["cluster", "sdumont"],
        ["account", site.project],
        ["user", site.user, f"account={site.project}"],
    ):
        world.run(["sacctmgr", "-i", "add", *words])


def empty_database() -> Path:
    """The folder of a new, empty database; made when it is needed for the first time."""
    if not CACHE.exists():
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix="new-", dir=CACHE.parent))
        command = ["mariadb-install-db", "--no-defaults", f"--datadir={fresh}", "--user=mysql"]
        command += ["--skip-test-db", *SMALL]
        subprocess.run(command, check=True, capture_output=True)
        # Another process may have been faster; either database will do.
        try:
            os.rename(fresh, CACHE)
        except OSError:
            shutil.rmtree(fresh)
    return CACHE


def _answers(world: World) -> bool:
    return world.run(["sacctmgr", "-n", "show", "cluster"], check=False).returncode == 0


def _wait_for(condition: Callable[[], bool], daemon: Daemon, patience: float = 30) -> None:
    give_up = time.monotonic() + patience
    while not condition():
        if not daemon.running or time.monotonic() > give_up:
            raise LabBroken(f"{daemon.name} did not come up\n{daemon.last_words}")
        time.sleep(0.05)
