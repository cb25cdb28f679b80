"""The packages that a requirements file names, with the versions it pins."""

import re
from dataclasses import dataclass

from rabaska.domain.gpus import Version, parsed

_NAMED = re.compile(
    r"([A-Za-z0-9][\w.-]*)\s*(\[[^\]]*\])?\s*(@\s*\S+|[(]?\s*[<>=!~][^;#]*)?\s*(;.*)?$"
)
_ELSEWHERE = re.compile(
    r"(sys_platform|platform_system|os_name)\s*==\s*['\"](win|darwin|mac|nt)", re.I
)
_ADDRESS = re.compile(r"^(\w+\+)?\w+://|^\.{0,2}/|^\.$|^[^\s@]*\.(whl|zip|tar\.gz)$")


@dataclass(frozen=True)
class Requirement:
    name: str  # as in `plain_name`
    version: Version  # empty: not pinned
    cuda: str  # "cu121"
    line: int
    extras: bool = False  # `name[extra]`: more packages come along
    loose: bool = True  # pip takes the newest; not where a limit or a version says otherwise
    below: Version = ()  # `<2.1`: what pip takes is older
    elsewhere: bool = False  # from a folder, an address or a repository


def read(text: str) -> tuple[Requirement, ...]:
    """The packages that a requirements file names, with what is pinned."""
    index = re.search(r"download\.pytorch\.org/whl/(cu\d+|cpu|rocm[\d.]+)", text)
    requirements = []
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*$|\s--\w.*$|\\$", "", line.lstrip("\ufeff")).strip()
        entry = _NAMED.fullmatch(line)
        if entry and not _ADDRESS.search(line) and not _ELSEWHERE.search(entry[4] or ""):
            requirements.append(_requirement(entry, number, index[1] if index else ""))
    return tuple(requirements)


def has_more(text: str) -> bool:
    """Whether it also names files, folders or addresses, whose packages nobody can tell."""
    lines = [line.strip() for line in text.splitlines()]
    return any(
        _ADDRESS.search(line) or re.match(r"-[rce]|--(req|constr|edit)", line) for line in lines
    )


def _requirement(entry: re.Match[str], number: int, build: str) -> Requirement:
    limits = (entry[3] or "").strip("() ")
    pinned = re.match(r"={2,3}\s*([\w.+!]+)(\.\*)?\s*$", limits)
    version = pinned[1] if pinned else ""
    return Requirement(
        plain_name(entry[1]),
        parsed(version),
        version.partition("+")[2] or build,
        number,
        extras=bool(entry[2]),
        loose=not re.search(r"==|<|~=|@", limits),
        below=_below(limits),
        elsewhere=limits.startswith("@"),
    )


def _below(limits: str) -> Version:
    found = re.search(r"<(=?)\s*([\d.]+)", limits)
    version = parsed(found[2]) if found else ()
    return (*version, 1) if found and found[1] else version


def plain_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
