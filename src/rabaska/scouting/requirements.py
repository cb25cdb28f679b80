"""Where the project says what it needs: requirements.txt, uv.lock, pyproject.toml and others."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from rabaska.domain.package_lists import LOCK

_REQUIREMENTS = ("requirements.txt", "requirements-train.txt", "requirements/base.txt")
_CONDA = ("environment.yml", "environment.yaml", "conda.yml", "conda.yaml")


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
