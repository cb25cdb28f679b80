"""What stands in one place of rabaska.toml held against what stands in another."""

import os
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path as File

from rabaska.domain.amounts import say_duration
from rabaska.domain.projects import PLACEHOLDERS
from rabaska.node.command_words import placeholders
from rabaska.settings.data_sources import mistakes_of_source
from rabaska.settings.document import Mistake, Path, nearest
from rabaska.settings.project_tables import EnvironmentTable, Settings
from rabaska.settings.resolution import Resolved
from rabaska.settings.validation import NAME


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
        mistakes += _placeholders(resolved)
    if doubtful.isdisjoint({"data", "cluster"}):
        mistakes += _datasets(resolved)
    if doubtful.isdisjoint({"resources", "chain", "cluster"}):
        mistakes += _grace(resolved)
    if doubtful.isdisjoint({"environment", "cluster"}):
        mistakes += _environment(resolved, folder)
    return mistakes


def _placeholders(resolved: Resolved) -> list[Mistake]:
    settings = resolved.settings
    # Also what is named for another cluster alone: only a run has to know where it is.
    tables = [settings.data, *(own.data for own in settings.cluster.values())]
    names = list(dict.fromkeys(name for table in tables for name in table))
    return [
        *mistakes_in(settings.command, ("command",), names),
        *mistakes_in(settings.resume, ("resume",), names),
    ]


def _datasets(resolved: Resolved) -> list[Mistake]:
    mistakes = []
    taken: dict[str, str] = {}
    for name, data in resolved.data.items():
        own = name in resolved.own.data
        path: Path = ("cluster", resolved.cluster, "data", name) if own else ("data", name)
        variable = "RABASKA_DATA_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper()
        if not re.fullmatch(NAME, name) or len(name) > 60:
            advice = "use letters, digits, dots, dashes and underscores, 60 at most"
            mistakes.append(Mistake(path, f"dataset name `{name}`", advice))
        elif variable in taken:
            advice = f"`{taken[variable]}` has the same variable, {variable}"
            mistakes.append(Mistake(path, f"dataset name `{name}`", advice))
        else:
            fields = {key: getattr(data, key) for key in data.model_fields_set}
            mistakes += mistakes_of_source(path, fields, here=resolved.cluster == "here")
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
    if resolved.kind == "container" and not resolved.environment.image:
        advice = 'write the `image`: "image.sif", or an address such as "docker://…"'
        return [Mistake(resolved.where("environment", "kind"), '`kind = "container"`', advice)]
    travels = resolved.travels
    if travels and not os.access(folder / travels, os.R_OK):
        key = "path" if resolved.kind == "packed" else "image"
        what = "archive or environment" if resolved.kind == "packed" else "image"
        advice = f"rabaska looks in {folder}; a path on the cluster begins with `/`, `~` or `$`"
        path = resolved.where("environment", key)
        return [Mistake(path, f"no readable {what} `{travels}`", advice)]
    if resolved.kind == "virtualenv":
        return _absent(resolved, folder, "requirements", resolved.requirements)
    if resolved.kind == "conda":
        return _absent(resolved, folder, "file", resolved.conda_file)
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
        Mistake((*path, "kind"), '`kind = "current"` next to `requirements`', advice)
        for path, table in tables
        if table.kind == "current" and table.requirements
    ]


_LISTS = {"requirements": "requirements file", "file": "conda environment file"}


def _absent(resolved: Resolved, folder: File, key: str, name: str) -> list[Mistake]:
    """The mistake of naming a list of packages that is not there."""
    file = folder / name
    # `access` first: it says no where `is_file` would raise, as for a name that is too long.
    if os.access(file, os.R_OK) and file.is_file():
        return []
    path = resolved.where("environment", key if getattr(resolved.environment, key) else "kind")
    return [Mistake(path, f"no readable {_LISTS[key]} `{name}`", f"rabaska looks in {folder}")]
