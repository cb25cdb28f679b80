"""Wheels fetched on this computer for the Python and the platform of another."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rabaska.environments.pip_wheel import pip_words
from rabaska.node.environment.pip import lines

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
        found = re.fullmatch(r"glibc-2\.([0-9]{1,3})(\..*)?", self.libc)
        newest = int(found[1]) if found else 17
        tags = [f"manylinux_2_{n}_{self.machine}" for n in range(newest, _OLDEST_GLIBC - 1, -1)]
        named = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
        tags += [f"{tag}_{self.machine}" for least, tag in named.items() if newest >= least]
        return [*tags, f"linux_{self.machine}"]

    @property
    def python(self) -> str:
        return ".".join(self.version.split(".")[:2])


def lacking(requirements: str, named: Sequence[str]) -> str:
    """What a cluster `named` of the user's requirements, as the text of such a file.

    All of them where it named none, or anything else: pip builds what it is told to fetch, on
    this computer, so nobody but the user may say what that is.
    """
    own = set(lines(requirements))
    return "\n".join(dict.fromkeys(named)) if named and own.issuperset(named) else requirements


def download_command(target: Target, requirements: Path, wheels: Path) -> list[str]:
    """pip's words; only wheels will do, since nothing can be built here for there."""
    words = [*pip_words(), "download", "--quiet", "--disable-pip-version-check"]
    for platform in target.platforms:
        words += ["--platform", platform]
    words += ["--python-version", target.python, "--implementation", "cp"]
    words += ["--abi", f"cp{target.python.replace('.', '')}", "--abi", "abi3", "--abi", "none"]
    return [
        *words,
        "--only-binary=:all:",
        "--requirement",
        str(requirements),
        "--dest",
        str(wheels),
    ]


def pip_command(python: str, folder: Path) -> list[str]:
    """The words that fetch the newest pip for `python`, such as 3.6."""
    words = [*pip_words(), "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    words += ["--python-version", python, "--only-binary=:all:", "--dest", str(folder)]
    return [*words, "pip"]
