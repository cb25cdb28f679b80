"""A project's list of packages, whatever file holds it, as the text of a requirements file."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from rabaska.domain import uv_lock
from rabaska.domain.uv_lock import UnusableList
from rabaska.node.environment.pip_queries import normalised

LOCK, PYPROJECT = "uv.lock", "pyproject.toml"
# Where nobody says which file, the first of these that the project has.
USUAL = ("requirements.txt", LOCK, "requirements-train.txt", "requirements/base.txt", PYPROJECT)

Table = Mapping[str, Any]


def as_requirements(file: str, text: str, extras: Sequence[str] = ()) -> str:
    """The content of `file` as requirements; UnusableList where it cannot be that."""
    name = PurePath(file).name
    if name == LOCK:
        return uv_lock.requirements(text, extras)
    if name == PYPROJECT:
        return _declared(text, extras)
    if extras:
        raise UnusableList(f"`extras` are those of a {LOCK} or {PYPROJECT}")
    return text


def _declared(text: str, extras: Sequence[str]) -> str:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise UnusableList(f"it is not TOML: {problem}") from problem
    project, poetry = _table(content, "project"), _table(content, "tool", "poetry")
    if "dependencies" in project:
        lines = list(_listed(content, project["dependencies"], ()))
    elif "dependencies" in poetry:
        lines = list(_from_poetry(_table(poetry, "dependencies")))
    else:
        raise UnusableList("it has no `dependencies` under [project]")
    for extra in extras:
        lines += _optional(content, extra, ())
    return "".join(f"{line}\n" for line in lines)


def _optional(content: Table, extra: str, seen: tuple[str, ...]) -> Iterator[str]:
    """What an optional list or a dependency group adds; groups may include others (PEP 735)."""
    optional = _table(content, "project", "optional-dependencies")
    groups = _table(content, "dependency-groups")
    named = {normalised(name): listed for name, listed in {**groups, **optional}.items()}
    name = normalised(extra)
    if name not in named:
        known = ", ".join(sorted(named)) or "none"
        raise UnusableList(f"it has no optional list or group `{extra}`; it has: {known}")
    if name in seen:
        raise UnusableList(f"its optional list or group `{extra}` includes itself")
    yield from _listed(content, named[name], (*seen, name))


def _listed(content: Table, listed: object, seen: tuple[str, ...]) -> Iterator[str]:
    """The entries of a list, without those that name other lists of the same project.

    An extra may be spelled `demo[plots]`, by the project's own name, which an index knows, if at
    all, for somebody else's project.
    """
    if not isinstance(listed, list):
        raise UnusableList(f"{listed!r} is not a list of packages")
    own = normalised(str(_table(content, "project").get("name", "")))
    for entry in listed:
        named = re.match(r"([\w.-]+)\s*\[([^\]]*)\]", entry) if isinstance(entry, str) else None
        if isinstance(entry, dict):
            yield from _optional(content, str(entry.get("include-group")), seen)
        elif named and own and normalised(named[1]) == own:
            for extra in named[2].split(","):
                yield from _optional(content, extra.strip(), seen)
        else:
            yield str(entry)


def _from_poetry(listed: Table) -> Iterator[str]:
    for name, wanted in listed.items():
        if normalised(name) == "python":
            continue
        table = wanted if isinstance(wanted, dict) else {"version": wanted}
        if not isinstance(table.get("version"), str):
            raise UnusableList(f"`{name}` is not named with a version")
        if table.get("optional"):
            continue
        inside = f"[{','.join(table['extras'])}]" if table.get("extras") else ""
        marker = f" ; {table['markers']}" if table.get("markers") else ""
        yield f"{name}{inside}{_range(table['version'])}{marker}"


def _range(version: str) -> str:
    """Poetry's `^1.2`, `~1.2` and `1.2` in the words of pip."""
    parts = [part.strip() for part in version.split(",")]
    return ",".join(filter(None, map(_bounds, parts)))


def _bounds(part: str) -> str:
    found = re.fullmatch(r"([\^~])\s*(\d+(?:\.\d+)*)(\S*)", part)
    if part in ("", "*"):
        return ""
    if found is None:
        return part if part[0] in "<>=!~" else f"=={part}"
    numbers = [int(number) for number in found[2].split(".")]
    return f">={found[2]}{found[3]},<{_next(numbers, found[1])}"


def _next(numbers: list[int], sign: str) -> str:
    """The first version that is too new: `^` keeps the first number that is not 0, `~` two."""
    if sign == "~":
        place = min(1, len(numbers) - 1)
    else:
        place = next((i for i, number in enumerate(numbers) if number), len(numbers) - 1)
    return ".".join(map(str, [*numbers[:place], numbers[place] + 1]))


def _table(content: Table, *names: str) -> Table:
    for name in names:
        inner = content.get(name)
        content = inner if isinstance(inner, dict) else {}
    return content
