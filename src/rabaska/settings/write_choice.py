"""A choice written into rabaska.toml: a few keys of one cluster, or the default cluster.

All else stays as it was.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

from rabaska.domain.toml_text import quoted
from rabaska.errors import SettingsError
from rabaska.node import files, private_files
from rabaska.settings import document
from rabaska.settings.project_file import FILE, find

_TABLES = ("resources", "chain")
_ON = "on"


def write_choice(file: File, cluster: str, choice: Mapping[str, Any]) -> None:
    """Put `choice` into the table [cluster.NAME]; its tables `resources` and `chain` keep the rest.

    Whole or not at all; comments, order and every other line stay. A value of None removes the key.
    """
    import tomlkit  # costs as much as all of a small command
    from tomlkit.exceptions import TOMLKitError

    text = file.read_bytes().decode("utf-8-sig")
    try:
        written = tomlkit.parse(text)
        own = _table(_table(written, "cluster", tomlkit.table(is_super_table=True)), cluster)
        for key, value in choice.items():
            _put(own, key, value)
        changed = tomlkit.dumps(written)
        same = _without(tomllib.loads(text), cluster) == _without(tomllib.loads(changed), cluster)
    except (TOMLKitError, ValueError, TypeError, AttributeError):
        same = False
    if not same:
        raise SettingsError(
            f"{file.name} cannot be changed",
            why=f"its table for {cluster} is written in a way that rabaska cannot add to",
            hint=f"write it by hand under [cluster.{cluster}]: {shown(choice)}",
        )
    rewrite(file, changed)


def rewrite(file: File, text: str) -> None:
    """Write a file of the user's again, complete or not at all.

    Its mode stays, and a link stays a link.
    """
    target, mode = os.path.realpath(file), file.stat().st_mode
    with private_files.AsUser():
        files.write_whole(target, text)
    File(target).chmod(mode)


def shown(choice: Mapping[str, Any]) -> str:
    """The choice as a line of TOML, for a person to read."""
    given = {key: _given(value) for key, value in choice.items()}
    return ", ".join(f"{key} = {_inline(value)}" for key, value in given.items() if value)


def _inline(value: Any) -> str:
    if not isinstance(value, Mapping):
        return quoted(value) if isinstance(value, str) else str(value)
    inside = ", ".join(f"{key} = {_inline(each)}" for key, each in value.items())
    return f"{{{inside}}}"


def _given(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: each for key, each in value.items() if each is not None}


def _table(within: Any, name: str, new: Any = None) -> Any:
    import tomlkit

    if name not in within:
        within[name] = tomlkit.table() if new is None else new
    return within[name]


def _put(own: Any, key: str, value: Any) -> None:
    import tomlkit

    if key not in _TABLES:
        if value is None:
            own.pop(key, None)
        else:
            own[key] = value
        return
    if key not in own:
        if not _given(value):
            return
        own[key] = tomlkit.inline_table()
    for name, each in value.items():
        if each is None:
            own[key].pop(name, None)
        else:
            own[key][name] = each


def _without(values: dict[str, Any], cluster: str) -> dict[str, Any]:
    """All but the table of that cluster."""
    clusters = {name: own for name, own in values.get("cluster", {}).items() if name != cluster}
    return {**values, "cluster": clusters}


def set_default_cluster(folder: File, name: str) -> File:
    """Write `on` into the rabaska.toml around `folder`; every other line stays as it is."""
    file = find(folder)
    text = file.read_bytes().decode("utf-8")
    written = document.parse(text, FILE)
    lines = text.split("\n")  # what else Python takes for the end of a line is none in TOML
    end = "\r" if lines[0].endswith("\r") else ""
    line, place = f'{_ON} = "{name}"', written.lines.get((_ON,))
    if place is not None:
        lines[place - 1] = f"{line}{_comment(lines[place - 1])}{end}"
    else:
        # Before the first key or table it is a key of no table.
        first = min(written.lines.values(), default=1) - 1
        lines.insert(first + 1 if _is_name(lines[first]) else first, f"{line}{end}")
    changed = "\n".join(lines)
    document.parse(changed, FILE)
    rewrite(file, changed)
    return file


def _comment(line: str) -> str:
    """What follows the value of a line that we wrote, or somebody wrote like us."""
    _, mark, rest = line.rpartition("#")
    return f"  #{rest.rstrip()}" if mark and rest.count('"') == 0 else ""


def _is_name(line: str) -> bool:
    """Whether it is `name = "…"`, all in one line: people read that first."""
    return bool(re.fullmatch(r"name\s*=\s*\"[^\"]*\"\s*(#.*)?", line.rstrip()))
