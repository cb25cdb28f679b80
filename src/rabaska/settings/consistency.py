"""What can be wrong between keys that are each right by themselves."""

import os
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path as File

from rabaska.domain.amounts import say_duration
from rabaska.domain.projects import PLACEHOLDERS
from rabaska.node.command_words import placeholders
from rabaska.settings.document import Mistake, Path, nearest
from rabaska.settings.project_tables import Settings
from rabaska.settings.resolution import Resolved
from rabaska.settings.value_types import NAME


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
