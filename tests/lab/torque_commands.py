"""Slurm's own qsub, qstat and qdel, as Debian's slurm-wlm-torque has them.

The package cannot be installed beside Grid Engine's commands of the same names, so it is unpacked
into a folder, and a lab that wants them gets copies.
"""

import fcntl
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.needs.packages import LOCK

from .cluster import Lab

PACKAGE = "slurm-wlm-torque"
CACHE = Path("/var/cache/rabaska-lab") / PACKAGE
PROGRAMS = ("qsub", "qstat", "qdel")


def give_torque_commands(lab: Lab) -> None:
    for program in PROGRAMS:
        text = (unpacked() / "usr/bin" / program).read_text()
        # Beside sbatch, where they look for it; Grid Engine's are links to one file.
        lab.path(f"/usr/bin/{program}").unlink(missing_ok=True)
        lab.world.write(f"/usr/bin/{program}", text, mode=0o755)


def unpacked() -> Path:
    """The content of the package, fetched when it is needed for the first time."""
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not CACHE.exists():
            CACHE.parent.mkdir(parents=True, exist_ok=True)
            fresh = Path(tempfile.mkdtemp(prefix="new-", dir=CACHE.parent))
            subprocess.run(
                ["apt-get", "download", "-qq", PACKAGE], cwd=fresh, check=True, capture_output=True
            )
            subprocess.run(["dpkg", "-x", *fresh.glob("*.deb"), fresh / "content"], check=True)
            (fresh / "content").rename(CACHE)
            shutil.rmtree(fresh)
    return CACHE
