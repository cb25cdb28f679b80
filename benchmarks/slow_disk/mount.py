"""Builds and mounts the slow file system; needs root and, on Debian, installs libfuse itself."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("slow_disk.c")
PACKAGES = ("libfuse3-dev", "fuse3", "pkg-config", "gcc")


def unavailable() -> str | None:
    """Why no slow disk can be mounted here, or None."""
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        return "the slow disk needs root and /dev/fuse"
    if not _is_installed() and shutil.which("apt-get"):
        environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES]
        subprocess.run(command, env=environment, check=False, capture_output=True)
    return None if _is_installed() else f"the slow disk needs the packages {' '.join(PACKAGES)}"


def _is_installed() -> bool:
    if not all(map(shutil.which, ("gcc", "pkg-config", "fusermount3"))):
        return False
    return subprocess.run(["pkg-config", "--exists", "fuse3"], check=False).returncode == 0


def build(folder: Path) -> Path:
    """Compile it into `folder`."""
    program = folder / "slow_disk"
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "fuse3"], check=True, capture_output=True, text=True
    ).stdout.split()
    subprocess.run(["gcc", "-O2", "-Wall", "-o", program, SOURCE, *flags], check=True)
    return program


@contextmanager
def slow_disk(
    root: Path, folder: Path, *, latency_us: int = 0, stream: int = 0, target: int = 0,
    targets: int = 1, stripe_kb: int = 0, flaws: int = 0,
) -> Iterator[Path]:  # fmt: skip
    """`root` seen through a slow disk that is mounted below `folder`; speeds are in MB/s."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = folder / "mount"
    mount.mkdir(exist_ok=True)
    options = (
        f"root={root},latency={latency_us},stream={stream},target={target},targets={targets},"
        f"stripe={stripe_kb},flaws={flaws},max_threads=128,max_idle_threads=128,"
        "attr_timeout=1,entry_timeout=1"
    )
    process = subprocess.Popen([build(folder), "-f", mount, "-o", options])
    try:
        while not mount.is_mount():
            if process.poll() is not None:
                raise RuntimeError("the slow disk could not be mounted")
            time.sleep(0.01)
        yield mount
    finally:
        subprocess.run(["fusermount3", "-u", "-z", mount], check=False)
        process.terminate()  # somebody may still have a file of it open
        process.wait(timeout=30)
