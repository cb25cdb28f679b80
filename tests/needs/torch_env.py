"""A Python with torch and mpi4py that every user of the lab may read, built once and kept.

The lab sees the machine's files: what lies here is there too, under the same path.
"""

import fcntl
import subprocess
from pathlib import Path

FOLDER = Path("/var/cache/rabaska-test-torch")
PYTHON = "/usr/bin/python3"  # one in somebody's home could not be run by the lab's user
WANTED = ("torch==2.13.0", "numpy", "mpi4py==4.1.2")


def is_complete() -> bool:
    mark = FOLDER / "complete"
    return mark.exists() and mark.read_text().split() == list(WANTED)


def build() -> Path:
    """The folder of the virtual environment; made when it is not there, which takes minutes."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        # Several test processes may want it at once; one of them makes it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_complete():
            _fill(FOLDER / "env")
            (FOLDER / "complete").write_text("\n".join(WANTED))
    return FOLDER / "env"


def _fill(folder: Path) -> None:
    subprocess.run([PYTHON, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *WANTED], check=True)
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
