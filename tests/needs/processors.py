"""Pythons for other kinds of processors, emulated by qemu: what is compiled runs on them, too."""

import fcntl
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from .packages import LOCK, SEARCHED
from .pythons import KEYS, debian_mirror

CACHE = Path("/var/cache/rabaska-test-processors")
RELEASE = "bookworm"
# As Linux calls each, and as Debian does.
MACHINES = {"aarch64": "arm64", "ppc64le": "ppc64el"}
PACKAGES = "python3.11-minimal,libpython3.11-stdlib,python3-pytest,python3-hypothesis,python3-attr"


def emulated() -> dict[str, Path]:
    """The root folder of each kind of processor but this one."""
    return {name: CACHE / name for name in MACHINES if name != platform.machine()}


def absent() -> list[str]:
    return [name for name, root in emulated().items() if not root.exists()]


def python(machine: str) -> list[str | Path]:
    """The command of a Python for that processor."""
    root = emulated()[machine]
    return [f"qemu-{machine}", "-L", root, root / "usr/bin/python3.11"]


def install() -> None:
    """Fetch those that are missing, side by side; needs root and mmdebstrap."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (LOCK.parent / "rabaska-processors").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fresh = {name: Path(tempfile.mkdtemp(prefix="new-", dir=CACHE)) for name in absent()}
        fetching = {name: _fetch(name, folder / "root") for name, folder in fresh.items()}
        for name, process in fetching.items():
            if process.wait() == 0:
                _point_inside(fresh[name] / "root")
                (fresh[name] / "root").rename(CACHE / name)
            shutil.rmtree(fresh[name])


def _fetch(machine: str, root: Path) -> subprocess.Popen[bytes]:
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract"]
    command += [f"--architectures={MACHINES[machine]}", f"--include={PACKAGES}"]
    command += [RELEASE, str(root), f"deb [signed-by={KEYS}] {debian_mirror()} {RELEASE} main"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, env={"PATH": SEARCHED}, **quiet)


def _point_inside(root: Path) -> None:
    """The loader is a link from the root; qemu would follow it out of this folder."""
    for link in (root / "lib").glob("ld*.so*"), (root / "lib64").glob("ld*.so*"):
        for path in link:
            target = os.readlink(path) if path.is_symlink() else ""
            if target.startswith("/"):
                path.unlink()
                path.symlink_to(os.path.relpath(root / target[1:], path.parent))
