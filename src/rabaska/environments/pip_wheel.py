"""pip as one file, for a Python that has none: ensurepip's, the system's, or the installed one."""

import importlib.metadata
import importlib.util
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from rabaska.environments import only_wheels

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
    return [*freely, sys.executable, "-P", only_wheels.__file__, str(wheel or "")]


def fits(wheel: Path, python: str) -> bool:
    """Whether the pip in a wheel says that it runs under `python`."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            own = re.fullmatch(r"pip-([\w.]+)\.dist-info/METADATA", name)
            if own:
                told = archive.read(name).decode(errors="replace")
                least = re.search(r"^Requires-Python: *>= *(\d+)\.(\d+)", told, re.MULTILINE)
                if _numbers(python) >= (3, 12) and _numbers(own[1]) < _SINCE_3_12:
                    return False
                return not least or _numbers(python) >= (int(least[1]), int(least[2]))
    return False


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _bundled() -> Iterator[Path]:
    found = importlib.util.find_spec("ensurepip")
    own = [Path(found.origin).parent / "_bundled"] if found and found.origin else []
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
