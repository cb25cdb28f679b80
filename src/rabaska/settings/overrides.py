"""Values from the command line, laid over those of rabaska.toml before anything is checked."""

import copy
from collections.abc import Mapping
from typing import Any

from rabaska.errors import SettingsError
from rabaska.settings.document import Path, nearest
from rabaska.settings.project_tables import ClusterTable, Settings
from rabaska.settings.validation import inner_table, keys

_PER_CLUSTER = [key for key in keys(ClusterTable) if key not in keys(Settings)]


def with_overrides(
    values: dict[str, Any], cluster: str, overrides: Mapping[str, object]
) -> tuple[dict[str, Any], frozenset[Path]]:
    """A copy of `values` with `overrides` in it, and the paths at which they stand."""
    changed = copy.deepcopy(values)
    given = set()
    for key, value in overrides.items():
        if value is None:
            continue
        path = _path(key, cluster)
        given.add(path)
        _put(changed, path, list(value) if isinstance(value, tuple) else value)
        # What was said of this cluster in the file must not win over the command line.
        _drop(changed, ("cluster", cluster, *path))
    return changed, frozenset(given)


def _path(key: str, cluster: str) -> Path:
    if key in _PER_CLUSTER:
        return ("cluster", cluster, key)
    settings = [*_PER_CLUSTER, *_dotted()]
    if key not in settings:
        raise SettingsError(f"unknown setting `{key}`", hint=nearest(key, settings))
    return tuple(key.split("."))


def _dotted() -> list[str]:
    """`name`, `command`, `resources.walltime` … : every key that has one place in the file."""
    settings = []
    for name, field in Settings.model_fields.items():
        table = inner_table(field.annotation)
        if table is None:
            settings.append(name)
        elif name not in ("data", "cluster"):
            settings += [f"{name}.{key}" for key in keys(table)]
    return settings


def _put(values: dict[str, Any], path: Path, value: object) -> None:
    """Where the file has a plain value for a table, it is left for the check to complain of."""
    for part in path[:-1]:
        values = values.setdefault(str(part), {})
        if not isinstance(values, dict):
            return
    values[str(path[-1])] = value


def _drop(values: dict[str, Any], path: Path) -> None:
    for part in path[:-1]:
        inner = values.get(str(part))
        if not isinstance(inner, dict):
            return
        values = inner
    values.pop(str(path[-1]), None)
