"""The packages that a requirements file names, with the versions it pins."""

import re
from dataclasses import dataclass

from rabaska.domain.gpus import Version, parsed


@dataclass(frozen=True)
class Requirement:
    name: str
    version: Version  # empty: not pinned
    cuda: str  # "cu121"
    line: int


def read(text: str) -> tuple[Requirement, ...]:
    """The packages that a requirements file names, with what is pinned."""
    index = re.search(r"download\.pytorch\.org/whl/(cu\d+)", text)
    requirements = []
    for number, line in enumerate(text.splitlines(), 1):
        entry = re.match(r"\s*([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*(?:==\s*([\w.+!]+))?", line)
        if entry:
            version = entry[2] or ""
            cuda = version.partition("+")[2] or (index[1] if index else "")
            requirements.append(Requirement(plain_name(entry[1]), parsed(version), cuda, number))
    return tuple(requirements)


def plain_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
