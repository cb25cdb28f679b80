"""Why a lab may not be possible on this machine; as root on Debian, what it lacks is installed."""

import os
import subprocess
from collections.abc import Mapping

from tests.needs import packages


def unavailable(wanted: Mapping[str, str] = packages.LAB) -> str | None:
    """Why no lab made of these packages can be booted on this machine, or None when one can.

    `make test` has installed everything before; a test that is run by hand installs what it needs.
    """
    if os.geteuid() != 0:
        return "the lab needs root, to make namespaces and device nodes"
    refused = _refused_namespaces()
    if refused:
        return f"the lab needs namespaces and overlayfs: {refused}"
    if packages.missing(wanted) and packages.can_install():
        packages.install(wanted)
    lacking = packages.missing(wanted)
    if lacking:
        return f"the lab needs the Debian packages {', '.join(lacking)}"
    return None


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
