"""rabaska.toml: found, read, checked, and its entries held against each other."""

import copy
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path as File
from typing import Any

from rabaska.domain.amounts import say_duration
from rabaska.domain.projects import FILL_IN, PLACEHOLDERS, Dataset, Project
from rabaska.errors import SettingsError
from rabaska.node import private_files
from rabaska.node.command_words import placeholders
from rabaska.settings import document, resolution
from rabaska.settings.document import Mistake, Path, nearest, refusal
from rabaska.settings.project_tables import EnvironmentTable, Settings
from rabaska.settings.resolution import Resolved, with_overrides
from rabaska.settings.validation import NAME, checked


def mistakes_in(words: Sequence[str], path: Path, datasets: Sequence[str]) -> list[Mistake]:
    """What is wrong with the placeholders of `words`, which stand at `path` in the file."""
    allowed = [*PLACEHOLDERS, *(f"data.{dataset}" for dataset in datasets)]
    names = dict.fromkeys(placeholders(list(words)))
    return [
        _mistake(name, path, allowed)
        for name in names
        if name not in allowed or (name == "data" and not datasets)
    ]


def _mistake(name: str, path: Path, allowed: Sequence[str]) -> Mistake:
    if name == "data":
        advice = "add a [data.NAME] table with the `path` of its folder"
        return Mistake(path, "`{data}` without a dataset", advice)
    guess = re.sub(r"`(.*)`", r"`{\1}`", nearest(name, allowed))
    listed = ", ".join(f"`{{{placeholder}}}`" for placeholder in allowed)
    advice = f"{guess} the placeholders are {listed}; `{{{{` and `}}}}` are literal braces".strip()
    return Mistake(path, f"unknown placeholder `{{{name}}}`", advice)


def disagreements(
    resolved: Resolved, folder: File, doubtful: AbstractSet[str | int] = frozenset()
) -> list[Mistake]:
    """Nothing is said of the tables in `doubtful`, of which a part was left out as wrong:
    `{data}` is no second mistake when the dataset was misspelt."""
    if doubtful - set(Settings.model_fields):
        return []  # a misspelt table may have meant any of them
    mistakes = []
    if doubtful.isdisjoint({"command", "resume", "data"}):
        mistakes += _placeholders(resolved.settings)
    if "data" not in doubtful:
        mistakes += _datasets(resolved.settings)
    if doubtful.isdisjoint({"resources", "chain", "cluster"}):
        mistakes += _grace(resolved)
    if doubtful.isdisjoint({"environment", "cluster"}):
        mistakes += _environment(resolved, folder)
    return mistakes


def _placeholders(settings: Settings) -> list[Mistake]:
    names = list(settings.data)
    return [
        *mistakes_in(settings.command, ("command",), names),
        *mistakes_in(settings.resume, ("resume",), names),
    ]


def _datasets(settings: Settings) -> list[Mistake]:
    mistakes = []
    taken: dict[str, str] = {}
    for name, data in settings.data.items():
        variable = "RABASKA_DATA_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper()
        if not re.fullmatch(NAME, name) or len(name) > 60:
            advice = "use letters, digits, dots, dashes and underscores, 60 at most"
            mistakes.append(Mistake(("data", name), f"dataset name `{name}`", advice))
        elif variable in taken:
            advice = f"`{taken[variable]}` has the same variable, {variable}"
            mistakes.append(Mistake(("data", name), f"dataset name `{name}`", advice))
        elif not data.path.strip():
            mistakes.append(Mistake(("data", name, "path"), "empty `path`"))
        taken.setdefault(variable, name)
    return mistakes


def _grace(resolved: Resolved) -> list[Mistake]:
    grace, walltime = resolved.chain.grace, resolved.resources.walltime
    if grace is None or grace < walltime:
        return []
    what = f"`grace` of {say_duration(grace)}"
    advice = f"`walltime` gives a job only {say_duration(walltime)} in total"
    return [Mistake(resolved.where("chain", "grace"), what, advice)]


def _environment(resolved: Resolved, folder: File) -> list[Mistake]:
    environment = resolved.environment.path
    if mistakes := _contradiction(resolved):
        return mistakes
    if resolved.kind in ("activate", "packed") and not environment:
        path = resolved.where("environment", "kind")
        advice = "write the `path` of the environment on the cluster"
        return [Mistake(path, f'`kind = "{resolved.kind}"`', advice)]
    travels = resolved.kind == "packed" and not environment.startswith(("/", "~", "$"))
    if travels and not os.access(folder / environment, os.R_OK):
        path = resolved.where("environment", "path")
        advice = f"rabaska looks in {folder}; a path on the cluster begins with `/`, `~` or `$`"
        return [Mistake(path, f"no readable archive or environment `{environment}`", advice)]
    file = folder / resolved.requirements
    # `access` first: it says no where `is_file` would raise, as for a name that is too long.
    if resolved.kind == "virtualenv" and not (os.access(file, os.R_OK) and file.is_file()):
        key = "requirements" if resolved.environment.requirements else "kind"
        what = f"no readable requirements file `{resolved.requirements}`"
        return [Mistake(resolved.where("environment", key), what, f"rabaska looks in {folder}")]
    return []


def _contradiction(resolved: Resolved) -> list[Mistake]:
    """The Python of the shell has the packages that it has, whatever a file lists."""
    of_cluster = ("cluster", resolved.cluster, "environment")
    tables: tuple[tuple[Path, EnvironmentTable], ...] = (
        (("environment",), resolved.settings.environment),
        (of_cluster, resolved.own.environment),
    )
    advice = 'write `kind = "virtualenv"` there instead, or remove one of the two lines'
    return [
        Mistake((*path, "kind"), '`kind = "current"` beside `requirements`', advice)
        for path, table in tables
        if table.kind == "current" and table.requirements
    ]


FILE = "rabaska.toml"


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
    owner = file.lstat().st_uid
    if owner in private_files.trusted():
        return
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
    values, given = with_overrides(written.values, cluster, overrides or {})
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
    for key in ("cluster", cluster, "resources"):
        inner = values.get(key)
        values = inner if isinstance(inner, dict) else {}
    return frozenset(values)


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
    """Refuse a project whose datasets are not folders or files on this computer."""
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
