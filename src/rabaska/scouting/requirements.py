"""Where the project says what it needs: requirements.txt, uv.lock, pyproject.toml and others."""

import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path

from rabaska.domain.package_lists import LOCK
from rabaska.scouting.source import SourceLine

_REQUIREMENTS = ("requirements.txt", "requirements-train.txt", "requirements/base.txt")
_CONDA = ("environment.yml", "environment.yaml", "conda.yml", "conda.yaml")
_LARGEST = 300_000  # characters of a text
_INSTALLS = re.compile(r"\bpip3? install ([^`\n|;&#]+)")
_NAMED = re.compile(r"[A-Za-z][\w.-]*(\[[\w,-]+\])?([<>=!~]=?[\w.*]+(,[<>=!~]=?[\w.*]+)*)?")
_WITH_VALUE = ("-r", "-c", "-e", "-f", "-i", "--index-url", "--extra-index-url", "--find-links",
               "--requirement", "--constraint", "--editable")  # fmt: skip


@dataclass(frozen=True)
class Packages:
    """The file that lists packages, and what kind it is."""

    file: str
    kind: str  # requirements, lock, pyproject, conda or setup

    @property
    def builds_virtualenv(self) -> bool:
        """Whether `requirements` under [environment] can name it."""
        return self.kind in ("requirements", "lock", "pyproject")


def find(project: Path) -> Packages | None:
    for name in _REQUIREMENTS:
        if (project / name).is_file():
            return Packages(name, "requirements")
    if (project / LOCK).is_file():
        return Packages(LOCK, "lock")
    if _declares_dependencies(project / "pyproject.toml"):
        return Packages("pyproject.toml", "pyproject")
    for name in _CONDA:
        if (project / name).is_file():
            return Packages(name, "conda")
    return Packages("setup.py", "setup") if (project / "setup.py").is_file() else None


def _declares_dependencies(path: Path) -> bool:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    declared = content.get("project")
    poetry = (
        content.get("tool", {}).get("poetry") if isinstance(content.get("tool"), dict) else None
    )
    return any(isinstance(table, dict) and "dependencies" in table for table in (declared, poetry))


def readme_advice(project: Path) -> list[str]:
    """What to do with packages that only a README names."""
    names, place = _in_readme(project)
    words = " ".join(map(shlex.quote, names))
    advice = (
        f"{place} installs packages, and a cluster reads them from a file: "
        f"`printf '%s\\n' {words} > requirements.txt` writes it"
    )
    return [advice] if names else []


def _in_readme(project: Path) -> tuple[tuple[str, ...], SourceLine | None]:
    """The packages that a README's text tells to install by pip, and the first such line."""
    names: dict[str, None] = {}
    place = None
    for path in sorted(project.glob("README*")):
        try:
            text = path.read_text("utf-8", "replace")[:_LARGEST] if path.is_file() else ""
        except OSError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for installs in _INSTALLS.findall(line):
                found = _packages_in(installs)
                names |= dict.fromkeys(found)
                place = place or (SourceLine(path.name, number) if found else None)
    return tuple(names), place


def _packages_in(words: str) -> list[str]:
    try:
        given = shlex.split(words)
    except ValueError:
        return []
    before = ["", *given]
    values = {n for n, word in enumerate(before[:-1]) if word in _WITH_VALUE}
    plain = [word for n, word in enumerate(given) if n not in values and not word.startswith("-")]
    # "pip install foo to get …" is a sentence; what is no package's name ends the list.
    return plain if all(map(_NAMED.fullmatch, plain)) and "to" not in plain else []
