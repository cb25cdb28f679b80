"""Packages by name: the modules each installs and the packages it brings along, in packages.tsv."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from rabaska.domain.gpus import Version, parsed

_NONE = "-"  # no module of its own, or nobody could read its files
MORE = "…"  # there are more modules, or packages of extras, than are listed
_MUCH = 3  # times further down in the table
_DEEPEST = 3  # parts of a dotted name


@dataclass(frozen=True)
class KnownPackage:
    name: str
    version: Version  # the newest when the table was made
    modules: tuple[str, ...]
    requires: tuple[str, ...]  # what pip installs along with it
    formerly: tuple[str, ...]  # what only older releases require
    extras: tuple[str, ...]  # what comes along with `name[extra]`
    size: int  # bytes of its wheel; 0 where that is small
    is_complete: bool  # whether `modules` has them all


@cache
def packages() -> Mapping[str, KnownPackage]:
    """The most popular first."""
    text = (resources.files(__package__) / "packages.tsv").read_text("utf-8")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {package.name: package for package in map(_read, lines)}


def _read(line: str) -> KnownPackage:
    cells = (*line.split("\t"), *[""] * 6)[:7]
    name, version, modules, requires, formerly, extras, size = cells
    words = modules.split() or [name.replace("-", "_")]
    return KnownPackage(
        name,
        parsed(version),
        tuple(word for word in words if word not in (_NONE, MORE)),
        tuple(requires.split()),
        tuple(formerly.split()),
        tuple(extras.split()),
        int(size or 0) * 10**6,
        is_complete=MORE not in words and _NONE not in words,
    )


@cache
def _by_module() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for package in packages().values():
        for module in package.modules:
            found.setdefault(module, []).append(package.name)
    return {module: _likeliest_first(module, names) for module, names in found.items()}


def _likeliest_first(module: str, names: list[str]) -> tuple[str, ...]:
    """By popularity; one that is called as the module wins unless it is much less popular."""
    own = module.replace("_", "-").replace(".", "-").lower()
    if own in names and _ranks()[own] <= _MUCH * _ranks()[names[0]]:
        return (own, *(name for name in names if name != own))
    return tuple(names)


@cache
def _ranks() -> Mapping[str, int]:
    return {name: rank for rank, name in enumerate(packages(), 1)}


def providers(module: str) -> tuple[str, ...]:
    """The packages that have a module, the most popular first; none where none is known."""
    parts = module.split(".")[:_DEEPEST]
    for depth in range(len(parts), 0, -1):
        if names := _by_module().get(".".join(parts[:depth])):
            return names
    return ()


def package_for(module: str) -> str:
    """The package to install for a module, in words; a name between backticks where it is known."""
    names = providers(module)
    return f"`{names[0]}`" if names else f"the package that has `{module.partition('.')[0]}`"


def brought(names: Iterable[str]) -> set[str]:
    """`names` and all that pip installs along with them."""
    found: set[str] = set()
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += packages()[name].requires if name in packages() else ()
    return found


def download_size(names: Iterable[str]) -> int:
    """Bytes of the large wheels of `names` and of what they bring along, in the newest release."""
    return sum(packages()[name].size for name in brought(names) if name in packages())
