"""uv.lock as the text of a requirements file: exact versions, their conditions and hashes.

The format is that of `uv lock` (version 1). Nobody needs uv for it, on either side.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rabaska.node.environment.pip_queries import normalised as normal

_DEFAULT_INDEX = "https://pypi.org/simple"
_VERSION = 1
_LOCAL = ("editable", "virtual", "directory")  # code of the project: it is sent as it is
_MOST_WAYS = 64  # ways to one package with different conditions; more is a lock we misread
_ALWAYS, _NEVER = "python_version >= '3'", "python_version < '3'"

# One way to a package needs all of its markers; a package is wanted if one way to it is.
Way = frozenset[str]
Ways = frozenset[Way]
Package = dict[str, Any]


class UnusableList(Exception):
    """A list of packages that cannot be turned into requirements; the text says why."""


def requirements(text: str, extras: Sequence[str] = ()) -> str:
    """What the project of a lock needs, with the optional lists or groups in `extras`."""
    try:
        lock = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise UnusableList(f"it is not TOML: {problem}") from problem
    if lock.get("version") != _VERSION:
        raise UnusableList(f"its version is {lock.get('version')}, and only 1 is known")
    try:
        return _requirements(lock, extras)
    except (KeyError, TypeError, AttributeError) as problem:
        raise UnusableList(f"it is not as uv writes it: {problem}") from problem


def _requirements(lock: Mapping[str, Any], extras: Sequence[str]) -> str:
    packages = [package for package in lock.get("package", []) if isinstance(package, dict)]
    roots = _roots(packages, lock)
    wanted = _reached(packages, roots, extras)
    taken = [
        (package, wanted[place])
        for place, package in enumerate(packages)
        if place in wanted and not _is_local(package)
    ]
    hashed = all(_hashes(package) for package, _ in taken)
    lines = [_line(package, ways, hashed=hashed) for package, ways in taken]
    return "".join(f"{line}\n" for line in [*_indexes(taken), *lines])


def _roots(packages: Sequence[Package], lock: Mapping[str, Any]) -> list[int]:
    """The project itself, or the members of its workspace."""
    members = lock.get("manifest", {}).get("members", [])
    at_root = [
        place
        for place, package in enumerate(packages)
        if package.get("name") in members
        or any(package.get("source", {}).get(kind) == "." for kind in _LOCAL)
    ]
    if not at_root:
        raise UnusableList('it names no project (`source = { virtual = "." }`)')
    return at_root


def _is_local(package: Package) -> bool:
    return any(kind in package.get("source", {}) for kind in _LOCAL)


def _reached(
    packages: Sequence[Package], roots: Sequence[int], extras: Sequence[str]
) -> dict[int, Ways]:
    """Which packages are needed, and under which conditions."""
    selected = {normal(extra) for extra in extras}
    _refuse_unknown(packages, roots, selected)
    names = {normal(packages[place]["name"]) for place in roots}
    found: dict[tuple[int, str], Ways] = {}  # (package, extra or "") → ways
    waiting = [(place, extra, frozenset([Way()])) for place in roots for extra in ("", *selected)]
    while waiting:
        place, extra, ways = waiting.pop()
        before = found.get((place, extra), frozenset())
        now = _shortest(before | ways)
        if now == before:
            continue
        found[place, extra] = now
        for needed in _needs(packages[place], extra, groups=place in roots):
            marker = _decided(str(needed.get("marker", "")), names, selected)
            if marker == _NEVER:
                continue
            further = now if marker in ("", _ALWAYS) else frozenset(way | {marker} for way in now)
            other = _find(packages, needed)
            waiting += [(other, more, further) for more in ("", *needed.get("extra", []))]
    reached: dict[int, Ways] = {}
    for (place, _), ways in found.items():
        reached[place] = _shortest(reached.get(place, frozenset()) | ways)
    return reached


def _refuse_unknown(packages: Sequence[Package], roots: Sequence[int], extras: set[str]) -> None:
    known = {
        normal(name)
        for place in roots
        for table in ("optional-dependencies", "dev-dependencies")
        for name in packages[place].get(table, {})
    }
    for extra in sorted(extras - known):
        listed = ", ".join(sorted(known)) or "none"
        raise UnusableList(f"it has no optional list or group `{extra}`; it has: {listed}")


def _needs(package: Package, extra: str, *, groups: bool) -> list[dict[str, Any]]:
    if not extra:
        return list(package.get("dependencies", []))
    tables = ["optional-dependencies"] + (["dev-dependencies"] if groups else [])
    return [
        needed
        for table in tables
        for name, listed in package.get(table, {}).items()
        if normal(name) == normal(extra)
        for needed in listed
    ]


def _find(packages: Sequence[Package], needed: Mapping[str, Any]) -> int:
    """The package that an entry means; where there are several it names version or source."""
    for place, package in enumerate(packages):
        keys = [key for key in ("name", "version", "source") if key in needed]
        if all(package.get(key) == needed[key] for key in keys):
            return place
    raise UnusableList(f"it has no package `{needed.get('name')}`, which another one needs")


def _decided(marker: str, projects: set[str], selected: set[str]) -> str:
    """`marker` with what depends on the extras of the project itself decided.

    Where extras exclude each other, uv writes `extra == 'extra-4-demo-cpu'`: length, name, extra.
    """

    def decide(found: re.Match[str]) -> str:
        sign, length, rest = found[1], int(found[3]), found[4]
        own = normal(rest[:length]) in projects and normal(rest[length + 1 :]) in selected
        return _ALWAYS if own == (sign == "==") else _NEVER

    return re.sub(r"extra (==|!=) '(extra|group)-(\d+)-([^']*)'", decide, marker)


def _shortest(ways: Ways) -> Ways:
    """Without those that need all that another one needs, and more."""
    kept = frozenset(way for way in ways if not any(other < way for other in ways))
    if len(kept) > _MOST_WAYS:
        raise UnusableList("its conditions are too many; write a requirements file (`uv export`)")
    return kept


def _line(package: Package, ways: Ways, *, hashed: bool) -> str:
    line = _pin(package)
    if Way() not in ways:
        either = [" and ".join(f"({marker})" for marker in sorted(way)) for way in ways]
        condition = " or ".join(f"({way})" if len(ways) > 1 else way for way in sorted(either))
        line += f" ; {condition}"
    return " ".join([line, *(f"--hash={text}" for text in _hashes(package) if hashed)])


def _pin(package: Package) -> str:
    name, source = package["name"], package.get("source", {})
    if "git" in source:
        # …?rev=main#<commit>; pip wants the commit after an @.
        url, _, commit = str(source["git"]).partition("#")
        return f"{name} @ git+{url.partition('?')[0]}@{commit}"
    if "url" in source:
        return f"{name} @ {source['url']}"
    if "registry" not in source:
        raise UnusableList(f"`{name}` comes from a file of this computer")
    return f"{name}=={package['version']}"


def _hashes(package: Package) -> list[str]:
    """None for what comes from git: then pip would refuse those of all others as well."""
    if "git" in package.get("source", {}):
        return []
    files = [package.get("sdist", {}), *package.get("wheels", [])]
    return [str(file["hash"]) for file in files if isinstance(file, dict) and "hash" in file]


def _indexes(taken: Sequence[tuple[Package, Ways]]) -> Iterator[str]:
    others = {str(package.get("source", {}).get("registry", "")) for package, _ in taken}
    for url in sorted(others - {"", _DEFAULT_INDEX}):
        if url.startswith(("https://", "http://")):
            yield f"--extra-index-url {url}"
        else:
            yield f"--find-links {url}"
