"""Known failures of one run: what they mean, with its names and its files in what to do."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rabaska.domain.projects import EnvironmentRecipe
from rabaska.domain.run_state import with_names
from rabaska.domain.runs import RunStatus
from rabaska.errors import RabaskaError
from rabaska.knowledge.failures import MODULE_MISSING, KnownFailure, explain
from rabaska.knowledge.packages import package_for
from rabaska.settings.project_file import load

_MOST = 2


def explanations(told: RunStatus, text: str) -> tuple[tuple[str, str], ...]:
    """What the end of its log means, and what to do about it."""
    stage = "run" if told.jobs else None  # what was refused never ran
    known = of_run(explain(text, stage=stage)[:_MOST], told.name, told.cluster, told.about)
    return tuple((failure.meaning, failure.fix) for failure in known)


def of_run(
    known: Iterable[KnownFailure], run: str, cluster: str, about: Mapping[str, Any]
) -> tuple[KnownFailure, ...]:
    """The same failures, with the names of this run and of what its project is made of."""
    return tuple(_of_run(failure, run, cluster, about) for failure in known)


def _of_run(
    failure: KnownFailure, run: str, cluster: str, about: Mapping[str, Any]
) -> KnownFailure:
    folder = str(about.get("folder") or "")
    known = failure.id == MODULE_MISSING and failure.module and folder
    if known and (fix := _add_package(failure.module, Path(folder), cluster)):
        return replace(failure, fix=fix)
    return replace(failure, fix=with_names(failure.fix, run, cluster))


def _add_package(module: str, folder: Path, cluster: str) -> str:
    """What to add and where, for the environment that the project has now; "" where none is."""
    own = _in_project(module, folder)
    if own:
        return own
    recipe = None
    with suppress(RabaskaError, OSError):
        recipe = load(folder, cluster=cluster).environment
    return f"{_where(recipe, package_for(module), cluster)}, then `rabaska run`" if recipe else ""


def _where(recipe: EnvironmentRecipe, package: str, cluster: str) -> str:
    if recipe.kind == "virtualenv":
        return f"Add {package} to {recipe.listed_in or 'requirements.txt'}"
    if recipe.kind == "conda":
        return f"Add {package} to {recipe.file}"
    if recipe.kind == "container":
        return f"Name an `image` under [environment] that has {package}"
    if recipe.kind in ("activate", "packed"):
        named = recipe.path or recipe.here
        return f"Install {package} in the environment {named} (`path` under [environment])"
    if cluster == "here":
        return f"Install {package} with the `pip` of the shell in which you type `rabaska run`"
    return (
        f'Write `kind = "virtualenv"` and `requirements = "requirements.txt"` under '
        f"[cluster.{cluster}.environment], with {package} in that file"
    )


def _in_project(module: str, folder: Path) -> str:
    """For a module of the project itself that its program did not find."""
    top = module.partition(".")[0]
    for parent in (folder / "src", folder / "lib"):
        if (parent / top).is_dir() or (parent / f"{top}.py").is_file():
            return (
                f'`{top}` is in {parent.name}/ of the project: write `PYTHONPATH = "{parent.name}"`'
                " under [environment.variables], then `rabaska run`"
            )
    return ""
