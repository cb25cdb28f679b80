"""What is inside wheels that are at hand: how many files, how many bytes, which modules."""

import re
import zipfile
from typing import List, Set, Tuple

from .pip_queries import PipPackage, normalised


def files_inside(packages: List[PipPackage]) -> int:
    """How many files the packages come to once installed; wheels elsewhere count as one."""
    return sum(_entries(package.file) for package in packages)


def _entries(file: str) -> int:
    return len(_listed(file)) or 1


def bytes_inside(packages: List[PipPackage]) -> int:
    """How many bytes they come to once installed, by the headers of the wheels that are at hand."""
    return sum(info.file_size for package in packages for info in _headers(package.file))


def modules_inside(packages: List[PipPackage]) -> Tuple[List[str], List[str]]:
    """The names that can be imported once they are installed, and the packages nobody can read."""
    modules: Set[str] = set()
    unread: Set[str] = set()
    for package in packages:
        names = _listed(package.file)
        if not names:
            unread.add(normalised(package.name))
        for name in names:
            path = re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", name)
            if re.search(r"\.(py|so)$", path):
                modules.add(re.split(r"[/.]", path)[0])
    return sorted(modules), sorted(unread)


def _listed(file: str) -> List[str]:
    return [info.filename for info in _headers(file)]


def _headers(file: str) -> List[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(file) as wheel:
            return wheel.infolist()
    except (OSError, zipfile.BadZipFile):
        return []
