"""Debian's packages that the tests need: one list, each under a program or file it brings."""

import contextlib
import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

LAB = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "munged": "munge",
    "ssh": "openssh-client",
    "sshd": "openssh-server",
    "rsync": "rsync",
    "ip": "iproute2",
    "faketime": "faketime",
    "/usr/share/modules/init/bash": "environment-modules",
}
ACCOUNTING = {"slurmdbd": "slurmdbd", "mariadbd": "mariadb-server"}
GRID_ENGINE = {
    "/usr/sbin/sge_qmaster": "gridengine-master",
    "/usr/sbin/sge_execd": "gridengine-exec",
    "qacct": "gridengine-client",
}
# What slurm-wlm-torque needs; the package itself cannot be installed together with Grid Engine's.
TORQUE_COMMANDS = {
    f"/usr/share/doc/{package}": package
    for package in ("libslurm-perl", "libslurmdb-perl", "libswitch-perl")
}
MPI = {
    "mpirun": "openmpi-bin",
    # Slurm's plugin opens libpmix.so, without a version: only the package for developers has it.
    "/usr/share/doc/libpmix-dev": "libpmix-dev",
}
SLOW_DISK = {
    "gcc": "gcc",
    "pkg-config": "pkg-config",
    "fusermount3": "fuse3",
    "/usr/share/doc/libfuse3-dev": "libfuse3-dev",
}
COMPILER = {"cc": "gcc", "/usr/include/stdlib.h": "libc6-dev", "python3-config": "python3-dev"}
# Pythons of other releases of Debian: fetched, and made to find their own libraries.
OTHER_PYTHONS = {"mmdebstrap": "mmdebstrap", "patchelf": "patchelf"}
# Other kinds of processors, for what is compiled.
EMULATION = {"qemu-aarch64": "qemu-user"}
SCREEN = {"screen": "screen"}
TMUX = {"tmux": "tmux"}
TRACING = {"strace": "strace"}
BROWSER = {"chromium": "chromium", "chromedriver": "chromium-driver"}
EVERYTHING = (
    LAB | ACCOUNTING | GRID_ENGINE | TORQUE_COMMANDS | MPI | SLOW_DISK | COMPILER | OTHER_PYTHONS
    | EMULATION | SCREEN | TMUX | TRACING | BROWSER
)  # fmt: skip

# Programs are looked for where root's would be, whatever PATH the tests run with.
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
GUARD = Path("/usr/sbin/policy-rc.d")
LOCK = Path("/run/lock/rabaska-lab-install")


def missing(wanted: Mapping[str, str] = EVERYTHING) -> list[str]:
    """The packages whose program is not here."""
    return sorted({package for program, package in wanted.items() if not _is_here(program)})


def can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get", path=SEARCHED) is not None


def install(wanted: Mapping[str, str] = EVERYTHING) -> None:
    """Install what is missing; a failure is reported by `missing`, not raised."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with LOCK.open("w") as lock:
        # Two test processes must not both run apt; the second finds nothing left to do.
        fcntl.flock(lock, fcntl.LOCK_EX)
        packages = missing(wanted)
        if not packages:
            return
        with _no_service_is_started():
            if not _apt("install", "--no-install-recommends", *packages):
                _apt("update")
                _apt("install", "--no-install-recommends", *packages)


def _apt(verb: str, *words: str) -> bool:
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    command = ["apt-get", verb, "-y", "-qq", *words]
    outcome = subprocess.run(command, env=environment, check=False, capture_output=True)
    return outcome.returncode == 0


def _is_here(program: str) -> bool:
    return Path(program).exists() or shutil.which(program, path=SEARCHED) is not None


@contextlib.contextmanager
def _no_service_is_started() -> Iterator[None]:
    """Keep Debian from starting the daemons it installs; the lab starts its own."""
    if GUARD.exists():
        yield
        return
    GUARD.write_text("#!/bin/sh\nexit 101\n")
    GUARD.chmod(0o755)
    try:
        yield
    finally:
        GUARD.unlink()
