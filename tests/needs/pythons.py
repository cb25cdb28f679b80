"""Other Pythons, for what promises to run under all of them: those that are here, and Debian's."""

import fcntl
import functools
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from .packages import LOCK, SEARCHED

OLDEST = (3, 6)
NEWEST = (3, 13)
CACHE = Path("/var/cache/rabaska-test-pythons")
# Debian 12, on which the tests run, has 3.11. The others lie in folders of their own.
RELEASES = {"bullseye": (3, 9), "trixie": (3, 13)}
PACKAGES = {"bullseye": "python3,libpython3-dev,python3-distutils"}  # pip needs distutils there
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"

Version = tuple[int, int]


def interpreters(*, since: Version = OLDEST) -> dict[Version, Path]:
    """Each version of Python on this computer that the node side promises to run under."""
    places = sorted((Path.home() / ".pyenv" / "versions").glob("*/bin/python3"))
    places += sorted(Path("/usr/bin").glob("python3*"))
    places += sorted(CACHE.glob("*/usr/bin/python3.*"))
    named = (shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], NEWEST[1] + 1))
    places += [Path(path) for path in named if path]
    known: dict[Version, Path] = {}
    for place in places:
        version = version_of(place)
        if version is not None and since <= version <= NEWEST:
            known.setdefault(version, place)
    return dict(sorted(known.items()))


@functools.cache
def version_of(path: Path) -> Version | None:
    """None when it is no interpreter: `python3-config`, or a shim without a Python behind it."""
    question = "import sys; print(*sys.version_info[:2])"
    try:
        answer = subprocess.run([path, "-c", question], check=False, capture_output=True, text=True)
        major, minor = answer.stdout.split()
        return int(major), int(minor)
    except (OSError, ValueError):
        return None


def absent() -> list[str]:
    """The versions of Python that no test can try on this computer."""
    known = interpreters()
    promised = ((3, minor) for minor in range(OLDEST[1], NEWEST[1] + 1))
    return [f"{major}.{minor}" for major, minor in promised if (major, minor) not in known]


def install() -> None:
    """Fetch the Pythons of other releases of Debian that are missing; needs root and patchelf."""
    known = interpreters()
    CACHE.mkdir(parents=True, exist_ok=True)
    for release, version in RELEASES.items():
        if version not in known:
            with (LOCK.parent / f"rabaska-python-{release}").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                _fetch(release)


def _fetch(release: str) -> None:
    target = CACHE / release
    if target.exists():
        return
    fresh = Path(tempfile.mkdtemp(prefix="new-", dir=CACHE))
    source = f"deb [signed-by={KEYS}] {debian_mirror()} {release} main"
    packages = PACKAGES.get(release, "python3,libpython3-dev")
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract"]
    command += [f"--include={packages}", release, str(fresh / "root"), source]
    fetched = subprocess.run(command, check=False, capture_output=True, env={"PATH": SEARCHED})
    if fetched.returncode == 0:
        # The binary keeps the path of its libraries, so it is patched for where it will lie.
        _use_own_libraries(fresh / "root", target)
        (fresh / "root").rename(target)
    shutil.rmtree(fresh)


def debian_mirror() -> str:
    """Where this machine's Debian comes from; the other releases are there, too."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    addresses = answer.stdout.split()
    return next(address for address in addresses if address.rstrip("/").endswith("debian"))


def _use_own_libraries(root: Path, target: Path) -> None:
    """Make the interpreters below `root` load their libraries from `target`."""
    machine = f"{platform.machine()}-linux-gnu"
    folders = [
        folder for folder in (f"lib/{machine}", f"usr/lib/{machine}") if (root / folder).is_dir()
    ]
    loader = next(path for path in root.rglob("ld-linux-*.so.2") if path.parent.name == machine)
    for binary in root.glob("usr/bin/python3.*"):
        if binary.is_symlink() or not binary.name.removeprefix("python3.").isdigit():
            continue
        command = ["patchelf", "--set-interpreter", str(target / loader.relative_to(root))]
        command += [
            "--force-rpath",
            "--set-rpath",
            ":".join(str(target / name) for name in folders),
        ]
        subprocess.run([*command, str(binary)], check=True, env={"PATH": SEARCHED})
