"""rabaska.toml: found, read and checked."""

import copy
import os
import shlex
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path as File
from typing import Any

from rabaska.domain.projects import FILL_IN, Dataset, Project
from rabaska.errors import RabaskaError, SettingsError
from rabaska.node import private_files
from rabaska.settings import document, resolution
from rabaska.settings.consistency import disagreements, mistakes_in
from rabaska.settings.document import Mistake, Path, nearest, refusal
from rabaska.settings.project_tables import ClusterTable, Settings
from rabaska.settings.validation import checked, inner_table, keys

FILE = "rabaska.toml"
HERE = "here"
_PER_CLUSTER = [key for key in keys(ClusterTable) if key not in keys(Settings)]


def find(folder: File) -> File:
    """The rabaska.toml of `folder` or of the nearest folder above it, as git looks for its own."""
    start = folder.absolute()
    file = next(_around(start), None)
    if file is not None:
        _refuse_foreign_file(file, start)
        return file
    raise SettingsError(
        f"no {FILE} in {start} or any folder above it",
        hint="run `rabaska init` in the folder of your training program",
    )


def _refuse_foreign_file(file: File, start: File) -> None:
    """Refuse a file that another user put in our way: it names programs, which we would run.

    Who stands in its folder, or in one of its owner's, means that project; but not in a folder
    such as /tmp, where everybody may put things.
    """
    if private_files.has_trusted_owner(str(file)):
        return
    owner = file.lstat().st_uid
    is_meant = file.parent == start or start.stat().st_uid == owner
    if is_meant and not file.parent.stat().st_mode & stat.S_IWOTH:
        return
    raise SettingsError(
        f"{file} belongs to another user, and is not used",
        why="its owner could choose what runs in your name",
        hint=f"`rabaska init` writes one of your own in {start}; if it is your project's, and only "
        f"people you trust may write to its folder, `cd {shlex.quote(str(file.parent))}` first",
    )


def is_in_project(folder: File) -> bool:
    return next(_around(folder.absolute()), None) is not None


def _around(start: File) -> Iterator[File]:
    for candidate in (start, *start.parents):
        if os.path.lexists(candidate / FILE):
            yield candidate / FILE


def load(
    folder: File, *, cluster: str = "here", overrides: Mapping[str, object] | None = None
) -> Project:
    """The project around `folder`, as it is to run on `cluster`.

    `overrides` are values from the command line by dotted key, such as
    `{"resources.walltime": "1h", "account": "def-prof"}`; None means not given. `account`,
    `queue`, `features`, `mail` and `native` are those of the cluster's own table.
    """
    file = find(folder)
    written = document.read(file, os.path.relpath(file, folder))
    written, twice = _with_jobs(written)
    values, given = _with_overrides(written.values, cluster, overrides or {})
    settings, mistakes = checked(Settings, values)
    mistakes += twice
    if settings is None:
        raise refusal(mistakes, written, given)
    resolved = resolution.resolve(settings, cluster, file.parent)
    mistakes += disagreements(resolved, file.parent, {mistake.path[0] for mistake in mistakes})
    if mistakes:
        raise refusal(mistakes, written, given)
    places = resolution.requested_in(resolved, given)
    return replace(
        resolution.project(resolved, file.parent),
        left_out=frozenset(resolution.REQUESTED) - set(places),
        written_in=places,
    )


def own_resources(folder: File, cluster: str) -> frozenset[str]:
    """The keys of `resources` that the cluster's own table sets."""
    values = document.read(find(folder), FILE).values
    return frozenset(_table(values, "cluster", cluster, "resources"))


def written_requests(folder: File, cluster: str) -> frozenset[str]:
    """The keys that say what a job requests, as far as the file has them for the cluster."""
    values = document.read(find(folder), FILE).values
    own = _table(values, "cluster", cluster)
    return frozenset({*_table(values, "resources"), *_table(own, "resources"), *own})


def _table(values: dict[str, Any], *path: str) -> dict[str, Any]:
    """The table there; an empty one where there is none."""
    for key in path:
        inner = values.get(key)
        values = inner if isinstance(inner, dict) else {}
    return values


def _with_jobs(written: document.Document) -> tuple[document.Document, list[Mistake]]:
    """The file with `[chain] links`, its older name, as `jobs`; who writes both has a mistake."""
    values, lines, mistakes = copy.deepcopy(written.values), dict(written.lines), []
    for path, chain in _chains(values):
        if "links" in chain:
            value, old, new = chain.pop("links"), (*path, "links"), (*path, "jobs")
            if "jobs" in chain:
                both = "both `links` and `jobs`"
                mistakes.append(Mistake(old, both, "they mean the same: keep `jobs`"))
            elif old in lines:
                lines[new] = lines[old]
            chain.setdefault("jobs", value)
    return replace(written, values=values, lines=lines), mistakes


def _chains(values: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Each table [chain] with its path; what is no table is left for the check to complain of."""
    clusters = values.get("cluster")
    tables: list[tuple[tuple[str, ...], Any]] = [((), values)]
    if isinstance(clusters, dict):
        tables += [(("cluster", name), own) for name, own in clusters.items()]
    for path, table in tables:
        chain = table.get("chain") if isinstance(table, dict) else None
        if isinstance(chain, dict):
            yield (*path, "chain"), chain


def check_command(project: Project) -> None:
    """Refuse a command, extended on the command line, that holds an unknown placeholder."""
    names = [dataset.name for dataset in project.datasets]
    wrong = mistakes_in(project.command, ("command",), names)
    if wrong:
        raise refusal(wrong, document.Document(FILE, {}), frozenset({("command",)}))


def check_filled(project: Project) -> None:
    """Refuse a project in which what `init` could not know was never filled in."""
    mistakes = [
        Mistake(
            (key,), f"`{FILL_IN}` in `{key}`", "replace it with the value that the program needs"
        )
        for key, words in (("command", project.command), ("resume", project.resume))
        if any(FILL_IN in word for word in words)
    ]
    if mistakes:
        raise refusal(mistakes, document.read(project.folder / FILE, FILE))


def check_data(project: Project) -> None:
    """Refuse a project whose datasets are not folders or files on this computer, or not named."""
    check_command(project)
    mistakes = [
        Mistake(("data", dataset.name, "beside" if place else "path"), *_absence(dataset, path))
        for dataset in project.datasets
        for place, path in enumerate(dataset.paths)
        if not (_is_folder(path) or _is_file(path))
    ]
    if mistakes:
        raise refusal(mistakes, document.read(project.folder / FILE, FILE))


def _is_folder(path: File) -> bool:
    # `access` first: it says no where `is_dir` would raise, as for a name that is too long.
    return os.access(path, os.R_OK | os.X_OK) and path.is_dir()


def _is_file(path: File) -> bool:
    """An archive, or one large file such as an LMDB, is a dataset as well."""
    return os.access(path, os.R_OK) and path.is_file()


def _absence(dataset: Dataset, path: File) -> tuple[str, str]:
    if os.access(path, os.F_OK):
        what = f"dataset `{dataset.name}` is not a readable folder or file: {path}"
        return what, ""
    around = path.parent
    names = [entry.name for entry in around.iterdir()] if _is_folder(around) else []
    what = f"no folder {path} for dataset `{dataset.name}`"
    return what, nearest(path.name, names)


def default_cluster(folder: File) -> str:
    """The cluster that a project uses where nobody names one: `on` in its rabaska.toml.

    This computer where it says nothing, or where `folder` is in no project.

    A file that cannot be read is refused by whoever needs more of it than this.
    """
    try:
        value = tomllib.loads(find(folder).read_text("utf-8")).get("on")
    except (RabaskaError, OSError, ValueError, RecursionError):
        return HERE
    return value if isinstance(value, str) and value else HERE


def _with_overrides(
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
