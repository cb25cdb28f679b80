"""A real Apptainer, of Debian's unstable release, and a small image: fetched, as root on Debian."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .packages import LOCK, SEARCHED
from .pythons import KEYS, debian_mirror

CACHE = Path("/var/cache/rabaska-test-apptainer")
PROGRAMS = CACHE / "usr/bin"  # for PATH: apptainer, and what it starts
IMAGE = CACHE / "image.sif"  # Debian 12 with its Python, and no `python`
_RELEASE = "sid"  # no stable release has it
_INCLUDED = "apptainer,squashfuse,squashfs-tools,libc6"
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_BINARIES = (
    "usr/bin/apptainer",
    f"{_LIBRARIES}/apptainer/bin/starter",
    "usr/bin/squashfuse_ll",
    "usr/bin/mksquashfs",
    "usr/bin/unsquashfs",
)


def is_here() -> bool:
    return IMAGE.exists()


def install() -> None:
    """A failure is seen by `is_here`, and its tests are left out."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with (LOCK.parent / "rabaska-apptainer").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_here():
            shutil.rmtree(CACHE, ignore_errors=True)
            if _fetch(_RELEASE, _INCLUDED, CACHE):
                _relocate(CACHE)
                _make_image()


def _fetch(release: str, packages: str, target: Path) -> bool:
    fresh = Path(tempfile.mkdtemp(prefix="rabaska-new-", dir=target.parent))
    source = f"deb [signed-by={KEYS}] {debian_mirror()} {release} main"
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract"]
    # A mirror may be weeks behind; what it has is signed all the same.
    command += ['--aptopt=Acquire::Check-Valid-Until "false"']
    command += [f"--include={packages}", release, str(fresh / "root"), source]
    done = subprocess.run(command, check=False, capture_output=True, env={"PATH": SEARCHED})
    if done.returncode == 0:
        (fresh / "root").rename(target)
        target.chmod(0o755)
    shutil.rmtree(fresh)
    return done.returncode == 0


def _relocate(root: Path) -> None:
    """Make its programs load its own libraries, and find their settings where they lie."""
    loader = next(root.rglob("ld-linux-x86-64.so.2"))
    libraries = root / _LIBRARIES
    for name in _BINARIES:
        words = ["patchelf", "--set-interpreter", str(loader), "--force-rpath"]
        words += ["--set-rpath", str(libraries), str(root / name)]
        subprocess.run(words, check=True, env={"PATH": SEARCHED})
    for library in libraries.glob("*.so*"):
        if not library.is_symlink() and not library.name.startswith(("ld-linux", "libc.so")):
            words = ["patchelf", "--force-rpath", "--set-rpath", str(libraries), str(library)]
            subprocess.run(words, check=False, capture_output=True, env={"PATH": SEARCHED})
    (root / "usr/var/lib/apptainer/mnt/session").mkdir(parents=True, exist_ok=True)
    for link, target in (
        ("usr/etc", "../etc"),
        ("usr/lib/etc", "../../etc"),
        ("usr/lib/var", "../var"),
    ):
        if not os.path.lexists(root / link):
            (root / link).symlink_to(target)


def _make_image() -> None:
    packages = "python3,dash,coreutils,grep,sed,findutils,procps"
    folder = CACHE / "image"
    if not _fetch("bookworm", packages, folder):
        return
    # Nothing of it was configured: what its programs look for at the least.
    (folder / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (folder / "etc/group").write_text("root:x:0:\n")
    (folder / "var/tmp").mkdir(parents=True, exist_ok=True)
    words = [str(PROGRAMS / "apptainer"), "--quiet", "build", str(CACHE / "new.sif"), str(folder)]
    environment = {"PATH": f"{PROGRAMS}:{SEARCHED}", "HOME": str(CACHE), "APPTAINER_NO_PRIVS": "1"}
    done = subprocess.run(words, check=False, capture_output=True, env=environment)
    shutil.rmtree(folder)
    if done.returncode == 0:
        (CACHE / "new.sif").rename(IMAGE)


if __name__ == "__main__":
    install()
