"""Wheels fetched on this computer for the Python of another, never built here; and pip itself."""

import importlib.metadata
import importlib.util
import re
import runpy
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from rabaska.node.environment.pip_queries import is_hashed, lines

_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn")
_HARMLESS = ("keyring",)  # which knows the passwords of an index
_BUILDERS = ("git", "hg", "svn", "bzr")  # and Python


def main(pip: str, words: list[str]) -> None:
    refused: list[str] = []

    def watch(event: str, details: tuple[object, ...]) -> None:
        if event in _STARTS:
            program = _program(event, details)
            if program not in _HARMLESS:
                refused.append(program)
                # pip goes on without what it only asks for its own description, as rustc.
                raise PermissionError(f"{program} may not be started")

    sys.argv = ["pip", *words]
    if pip:
        sys.path.insert(0, pip)
    sys.addaudithook(watch)
    try:
        runpy.run_module("pip", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code and any(program.startswith(("python", *_BUILDERS)) for program in refused):
            sys.stderr.write(
                "ERROR: not all packages have wheels, and none is built on this computer: name "
                "each package with a version, or build its wheel yourself\n"
            )
        raise


def _program(event: str, details: tuple[object, ...]) -> str:
    """The name of what is started; a shell's words where there is no name."""
    first = details[0] if details else ""
    if event == "subprocess.Popen" and not first:
        words = details[1]
        first = words[0] if isinstance(words, list | tuple) and words else words
    if first == sys.executable:
        return "python"
    return PurePath(str(first)).name


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])


_SYSTEM = (Path("/usr/share/python-wheels"),)  # Debian, Fedora
_SINCE_3_12 = (23, 2)  # older ones use what Python 3.12 no longer has, and do not say so
_LEFT_OUT = ("INSTALLER", "REQUESTED", "direct_url.json")  # which say how it came to be here


def find_pip(python: str, folder: Path) -> Path | None:
    """A wheel of pip that runs under `python`, such as 3.6; made in `folder` where it must be."""
    for wheel in (*_bundled(), *_installed(folder)):
        if fits(wheel, python):
            return wheel
    return None


def pip_words() -> list[str]:
    """The words that run pip on this computer; an environment of pipx or uv has none of its own."""
    # Many have `require-virtualenv` in their settings; what is only fetched needs none.
    freely = ["env", "PIP_REQUIRE_VIRTUALENV=0"]
    installed = importlib.util.find_spec("pip") is not None
    wheel = None if installed else next(_bundled(), None)
    if not installed and wheel is None:
        return [*freely, "pip"]
    # -P: a folder `pip` in the project, where we are, is not the one that is meant.
    return [*freely, sys.executable, "-P", __file__, str(wheel or "")]


def fits(wheel: Path, python: str) -> bool:
    """Whether the pip in a wheel says that it runs under `python`."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            own = re.fullmatch(r"pip-([\w.]+)\.dist-info/METADATA", name)
            if own:
                metadata = archive.read(name).decode(errors="replace")
                least = re.search(r"^Requires-Python: *>= *(\d+)\.(\d+)", metadata, re.MULTILINE)
                if _numbers(python) >= (3, 12) and _numbers(own[1]) < _SINCE_3_12:
                    return False
                return not least or _numbers(python) >= (int(least[1]), int(least[2]))
    return False


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _bundled() -> Iterator[Path]:
    spec = importlib.util.find_spec("ensurepip")
    own = [Path(spec.origin).parent / "_bundled"] if spec and spec.origin else []
    for place in (*own, *_SYSTEM):
        yield from sorted(place.glob("pip-*.whl"), reverse=True)


def _installed(folder: Path) -> Iterator[Path]:
    """The pip that is installed here, put into a wheel again."""
    try:
        pip = importlib.metadata.distribution("pip")
    except importlib.metadata.PackageNotFoundError:
        return
    wheel = folder / f"pip-{pip.version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in pip.files or ():
            inside = file.parts[0] == "pip" or file.parts[0].endswith(".dist-info")
            wanted = "__pycache__" not in file.parts and file.name not in _LEFT_OUT
            if inside and wanted and Path(file.locate()).is_file():
                archive.write(file.locate(), str(file))
    yield wheel


# The shape of what a cluster may say of its Python: it becomes words for pip on this computer.
FACTS = {
    "python": re.compile(r"[0-9]{1,2}\.[0-9]{1,3}(\.[0-9][0-9a-z.+]{0,20})?"),
    "machine": re.compile("[A-Za-z0-9_]{1,20}"),
    "libc": re.compile(r"[A-Za-z]{0,10}-?([0-9]{1,3}(\.[0-9]{1,3}){0,3})?"),
}
_OLDEST_GLIBC = 5  # manylinux_2_5 is where the tags begin (PEP 600)


@dataclass(frozen=True)
class Target:
    """The Python that will install the wheels, as it described itself."""

    version: str  # "3.11.2"
    machine: str  # "x86_64"
    libc: str  # "glibc-2.36"

    @property
    def platforms(self) -> list[str]:
        """Every tag a wheel may carry to run there; pip does not derive older ones by itself."""
        match = re.fullmatch(r"glibc-2\.([0-9]{1,3})(\..*)?", self.libc)
        newest = int(match[1]) if match else 17
        tags = [f"manylinux_2_{n}_{self.machine}" for n in range(newest, _OLDEST_GLIBC - 1, -1)]
        named = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
        tags += [f"{tag}_{self.machine}" for least, tag in named.items() if newest >= least]
        return [*tags, f"linux_{self.machine}"]

    @property
    def python(self) -> str:
        return ".".join(self.version.split(".")[:2])


def lacking(requirements: str, named: Sequence[str]) -> str:
    """What a cluster `named` of the user's requirements, as the text of such a file.

    All of them where a lock says which files, and where it named none, or anything else: pip builds
    what it is told to fetch, on this computer, so nobody but the user may say what that is.
    """
    if is_hashed(requirements):
        return requirements
    own = set(lines(requirements))
    if not named or not own.issuperset(named):
        return requirements
    return "\n".join([*sources(requirements), *dict.fromkeys(named)])


def sources(requirements: str) -> list[str]:
    """The lines that say where packages come from: an index of builds without CUDA, say."""
    found = (line.strip() for line in requirements.splitlines())
    return [
        line for line in found if re.match(r"(-i|-f|--(extra-)?index-url|--find-links)\b", line)
    ]


def download_command(
    target: Target, requirements: Path, wheels: Path, *, alone: bool = False
) -> list[str]:
    """pip's words; only wheels will do, since nothing can be built here for there.

    `alone` fetches what is named and nothing that it needs: a lock names everything.
    """
    words = [*pip_words(), "download", *_for_there(target, requirements, alone=alone)]
    return [*words, "--dest", str(wheels)]


def choice_command(target: Target, requirements: Path, report: Path) -> list[str]:
    """pip's words that fetch nothing: they write down what would be, alone, to `report`."""
    words = [*pip_words(), "install", "--dry-run", "--ignore-installed", "--retries", "1"]
    # pip wants a folder to install into where the platform is another; it writes nothing there.
    words += ["--target", str(report.parent / "none"), "--report", str(report)]
    return [*words, *_for_there(target, requirements, alone=True)]


def _for_there(target: Target, requirements: Path, *, alone: bool) -> list[str]:
    words = ["--quiet", "--disable-pip-version-check"]
    for platform in target.platforms:
        words += ["--platform", platform]
    words += ["--python-version", target.python, "--implementation", "cp"]
    words += ["--abi", f"cp{target.python.replace('.', '')}", "--abi", "abi3", "--abi", "none"]
    words += ["--only-binary=:all:", *(["--no-deps"] if alone else [])]
    return [*words, "--requirement", str(requirements)]


def pip_command(python: str, folder: Path) -> list[str]:
    """The words that fetch the newest pip for `python`, such as 3.6."""
    words = [*pip_words(), "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    words += ["--python-version", python, "--only-binary=:all:", "--dest", str(folder)]
    return [*words, "pip"]
