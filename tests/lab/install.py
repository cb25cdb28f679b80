"""The Debian packages a lab is made of, and why a lab may not be possible here."""

import contextlib
import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGES = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "munged": "munge",
    "sshd": "openssh-server",
    "rsync": "rsync",
    "ip": "iproute2",
    "faketime": "faketime",
    "/usr/share/modules/init/bash": "environment-modules",
}
SCREEN_PACKAGES = {"screen": "screen"}
ACCOUNTING_PACKAGES = {"slurmdbd": "slurmdbd", "mariadbd": "mariadb-server"}
GRID_ENGINE_PACKAGES = {
    "/usr/sbin/sge_qmaster": "gridengine-master",
    "/usr/sbin/sge_execd": "gridengine-exec",
    "qacct": "gridengine-client",
}
# What slurm-wlm-torque needs; the package itself cannot stand beside Grid Engine's.
TORQUE_PACKAGES = {
    f"/usr/share/doc/{package}": package
    for package in ("libslurm-perl", "libslurmdb-perl", "libswitch-perl")
}

# Programs are looked for where root's would be, whatever PATH the tests run with.
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
GUARD = Path("/usr/sbin/policy-rc.d")
LOCK = Path("/run/lock/rabaska-lab-install")


def unavailable(
    *,
    accounting: bool = False,
    grid_engine: bool = False,
    torque: bool = False,
    screen: bool = False,
) -> str | None:
    """Why no lab can be booted on this machine, or None when one can.

    As root on Debian it installs what is missing, once, before it answers.
    """
    if os.geteuid() != 0:
        return "the lab needs root, to make namespaces and device nodes"
    refused = _refused_namespaces()
    if refused:
        return f"the lab needs namespaces and overlayfs: {refused}"
    wanted = PACKAGES | (ACCOUNTING_PACKAGES if accounting else {})
    wanted |= GRID_ENGINE_PACKAGES if grid_engine else {}
    wanted |= TORQUE_PACKAGES if torque else {}
    wanted |= SCREEN_PACKAGES if screen else {}
    if missing(wanted) and shutil.which("apt-get"):
        install(wanted)
    lacking = missing(wanted)
    if lacking:
        return f"the lab needs the Debian packages {', '.join(lacking)}"
    return None


def missing(wanted: Mapping[str, str]) -> list[str]:
    """The packages whose program is not here."""
    return [package for program, package in wanted.items() if not _is_here(program)]


def install(wanted: Mapping[str, str]) -> None:
    """Install what is missing; a failure is told by `missing`, not raised."""
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


def _refused_namespaces() -> str:
    """What the kernel said when asked for the namespaces and the file system a lab needs."""
    trial = """
        mount -t tmpfs lab /mnt && mkdir /mnt/upper /mnt/work /mnt/root &&
        mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work lab /mnt/root
    """
    command = ["unshare", "-m", "-u", "-i", "-n", "-p", "-C", "--fork", "sh", "-c", trial]
    try:
        outcome = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return "there is no `unshare` here"
    return outcome.stderr.strip() if outcome.returncode else ""
