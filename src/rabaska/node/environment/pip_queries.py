"""Questions put to pip: what would be installed, from where, and what cannot be found."""

import json
import os
import re
import subprocess
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple
from urllib.parse import unquote

# Debian's own Python has a `venv` that does not work, for want of `ensurepip`. Fedora keeps the
# wheels of ensurepip elsewhere.
_FACTS = """
import glob, json, os, platform, sys
try:
    from pip import __version__ as pip
except ImportError:
    pip = ""
bundled, venv = [], False
try:
    import ensurepip
    for place in (os.path.join(os.path.dirname(ensurepip.__file__), "_bundled"),
                  "/usr/share/python-wheels"):
        bundled += sorted(glob.glob(os.path.join(place, "pip-*.whl")))
    import venv as module
    venv = bool(bundled)
except ImportError:
    pass
print(json.dumps([platform.python_version(), platform.machine(), "-".join(platform.libc_ver()),
                  pip, os.path.dirname(sys.executable), (bundled + [""])[0], venv]))
"""
_PIPE = subprocess.PIPE
_QUIET = ("--disable-pip-version-check", "--no-input")
_HASTE = ("--retries", "1", "--timeout", "15")  # a login node without internet says so soon
_ELSEWHERE = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT")
_AT_ONCE = 4  # questions side by side; a login node is shared


class Python(NamedTuple):
    """One interpreter, as it describes itself."""

    command: str
    version: str
    machine: str
    libc: str  # "glibc-2.36"
    pip: str  # its version, or "" where there is none
    folder: str
    wheel: str = ""  # which pip is run from, where none is installed
    venv: bool = True  # whether it makes virtual environments

    @property
    def runs_pip(self) -> List[str]:
        """The words before those of pip."""
        return (
            [self.command, os.path.join(self.wheel, "pip")]
            if self.wheel
            else [self.command, "-m", "pip"]
        )


class PipPackage(NamedTuple):
    name: str
    version: str
    file: str  # the wheel where it lies on this computer, or ""

    @property
    def pin(self) -> str:
        return "{}=={}".format(self.name, self.version)


class PipAnswer(NamedTuple):
    """What pip would install, or its own words on why it cannot."""

    packages: Optional[List[PipPackage]]
    errors: str = ""


class NoPython(Exception):
    """The interpreter that was asked for is not there."""


def describe(command: str, sent: str = "") -> Python:
    """The interpreter, with its own pip, or else one from a wheel: ensurepip's, or that was `sent`.

    Its `pip` is empty where there is none of all these.
    """
    try:
        words = [command, "-c", _FACTS]
        done = subprocess.run(words, check=False, stdout=_PIPE, stderr=_PIPE)
    except OSError as problem:
        raise NoPython("{}: {}".format(command, problem.strerror))
    if done.returncode != 0:
        raise NoPython("{}: {}".format(command, done.stderr.decode("utf-8", "replace").strip()))
    version, machine, libc, pip, folder, bundled, venv = json.loads(done.stdout.decode("utf-8"))
    wheel = ""
    if not pip:
        wheel = bundled or (sent if os.path.exists(sent) else "")
        pip = version_inside(wheel) if wheel else ""
    return Python(command, version, machine, libc, pip, folder, wheel, venv)


def version_inside(wheel: str) -> str:
    """The version of the pip in a wheel, whatever the wheel is called."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            match = re.match(r"pip-([\w.]+)\.dist-info/", name)
            if match:
                return match.group(1)
    raise NoPython("{} contains no pip".format(wheel))


def resolve(
    python: Python, requirements: str, places: List[str], online: bool = False
) -> PipAnswer:
    """What `requirements`, the text of such a file, comes to, out of the folders `places`.

    Nothing is installed. Packages that the interpreter itself has do not count: the new
    environment will not have them.
    """
    with tempfile.TemporaryDirectory(prefix="rabaska-") as folder:
        file, report = os.path.join(folder, "requirements.txt"), os.path.join(folder, "report")
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(requirements)
        if not can_report(python):
            return _resolve_by_copying(python, file, places, online, folder)
        words = ["install", "--dry-run", "--ignore-installed", "--quiet", "--report", report]
        code, errors = run(python, words + sources(places, online) + ["--requirement", file])
        if code != 0:
            return PipAnswer(None, errors)
        with open(report, encoding="utf-8") as stream:
            return PipAnswer([_reported(entry) for entry in json.load(stream)["install"]])


def can_report(python: Python) -> bool:
    """`pip install --dry-run --report` came with pip 22.2."""
    return tuple(int(part) for part in re.findall(r"\d+", python.pip)[:2]) >= (22, 2)


def _resolve_by_copying(
    python: Python, file: str, places: List[str], online: bool, folder: str
) -> PipAnswer:
    wheels = os.path.join(folder, "wheels")
    words = ["download", "--quiet", "--dest", wheels]
    code, errors = run(python, words + sources(places, online) + ["--requirement", file])
    if code != 0:
        return PipAnswer(None, errors)
    return PipAnswer([_located(named(name), places) for name in sorted(os.listdir(wheels))])


def _located(package: PipPackage, places: List[str]) -> PipPackage:
    """The same, with the path of its wheel where that is in one of `places`."""
    candidates = [os.path.join(place, package.file) for place in places]
    return package._replace(file=next(filter(os.path.exists, candidates), package.file))


def _reported(entry: Dict[str, Any]) -> PipPackage:
    url = str(entry.get("download_info", {}).get("url", ""))
    # `torch-2.5.1%2Bcpu-….whl`: its name has a plus.
    file = unquote(url[len("file://") :]) if url.startswith("file://") else ""
    return PipPackage(str(entry["metadata"]["name"]), str(entry["metadata"]["version"]), file)


def named(file: str) -> PipPackage:
    """The package of a wheel or source archive, by the rules for such names."""
    stem = re.sub(r"(\.whl|\.tar\.gz|\.zip)$", "", os.path.basename(file))
    if file.endswith(".whl"):
        parts = stem.split("-")
    else:
        parts = list(stem.rpartition("-")[::2])
    return PipPackage(parts[0], parts[1] if len(parts) > 1 else "", file)


def unfindable(python: Python, requirements: str, places: List[str]) -> List[str]:
    """Which lines of `requirements` no wheel in `places` fulfils, each asked by itself.

    pip stops at the first; somebody who waits for several needs to know all of them.
    """
    wanted = lines(requirements)
    with ThreadPoolExecutor(_AT_ONCE) as crew:
        findable = list(crew.map(lambda line: _is_findable(python, line, places), wanted))
    return [line for number, line in enumerate(wanted) if not findable[number]]


def _is_findable(python: Python, line: str, places: List[str]) -> bool:
    with tempfile.TemporaryDirectory(prefix="rabaska-") as folder:
        # Others can read a command line, and an address may hold a token; the folder is ours alone.
        file = os.path.join(folder, "requirements.txt")
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(line + "\n")
        words = ["download", "--quiet", "--no-deps", "--dest", folder]
        return run(python, words + sources(places, False) + ["--requirement", file])[0] == 0


def lines(requirements: str) -> List[str]:
    """The requirements themselves, without comments, options and hashes."""
    kept = []
    for line in re.sub(r"\\\r?\n", " ", requirements).splitlines():
        line = re.sub(r"(^|\s)#.*$|\s--\w.*$", "", line).strip()
        if line and not line.startswith("-"):
            kept.append(line)
    return kept


def is_hashed(requirements: str) -> bool:
    """Whether it names every file that may be installed, as a lock does; pip then checks them."""
    return "--hash=" in requirements


def without_hashes(requirements: str) -> str:
    return re.sub(r"\s--hash=\S+", "", requirements)


def sources(places: List[str], online: bool) -> List[str]:
    words = list(_HASTE) if online else ["--no-index"]
    for place in places:
        words += ["--find-links", place]
    return words


def run(python: Python, words: List[str]) -> Tuple[int, str]:
    """pip's exit code and what it complained of."""
    command = python.runs_pip + [words[0]] + list(_QUIET) + words[1:]
    done = subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=_PIPE,
        stderr=_PIPE,
        env=unbiased(os.environ),
    )
    errors = done.stderr.decode("utf-8", "replace").strip()
    errors = "\n".join(_without_repeats(errors))
    return done.returncode, errors or "exit code {}".format(done.returncode)


def unbiased(environment: Mapping[str, str]) -> Dict[str, str]:
    """Variables without what a user told pip for other occasions: where to install, and where not.

    `require-virtualenv` and `user` stand in many settings files, over which variables win.
    """
    own = {name: text for name, text in environment.items() if name not in _ELSEWHERE}
    return dict(own, PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0")


def _without_repeats(printed: str) -> List[str]:
    """What pip complained of, without the warnings it repeats for every attempt."""
    errors = [line for line in printed.splitlines() if line.lstrip().startswith("ERROR")]
    return errors or printed.splitlines()[-5:]


def normalised(name: str) -> str:
    """One spelling for one project (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def offered(places: List[str]) -> List[str]:
    """The projects that have a wheel in one of `places`, normalised."""
    projects: Set[str] = set()
    for place in places:
        try:
            names = os.listdir(place)
        except OSError:
            continue
        projects.update(normalised(named(name).name) for name in names if name.endswith(".whl"))
    return sorted(projects)
