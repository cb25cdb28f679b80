"""What of a project changed since a run was submitted, which keeps its code and environment."""

import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rabaska.domain.projects import EnvironmentRecipe, Project
from rabaska.domain.secrets import Secrets
from rabaska.errors import RabaskaError, SettingsError
from rabaska.node.record.plan import Plan
from rabaska.packing.code_snapshot import changed_files, is_as_named, unpacked
from rabaska.records.home import Home
from rabaska.settings.project_file import FILE, load
from rabaska.steps.carry import taken
from rabaska.steps.progress import SilentReporter

_NAMED = 5


def changed_since(plan: Plan, now: Project | None, on: str, home: Home) -> str:
    """What is different `now`, in words; "" where nothing is, or nobody can tell."""
    then = home.store / "code" / f"{plan.code}.tar"
    if now is None or not is_as_named(then):
        return ""
    parts = _files(then, now, home)
    if _environment_changed(then, now, on):
        parts.insert(0, f"[environment] in {FILE}")
    more = f" and {len(parts) - _NAMED} more" if len(parts) > _NAMED else ""
    return ", ".join(parts[:_NAMED]) + more


def _files(then: Path, now: Project, home: Home) -> list[str]:
    """Of the settings is said elsewhere what matters to a run."""
    # What cannot be sent cannot be told either; who types `run` learns why.
    with suppress(RabaskaError, OSError), tempfile.TemporaryDirectory() as scratch:
        new = taken(now, home, Path(scratch), SilentReporter())
        changed = changed_files(then, new.path) if new.path.stem != then.stem else []
        return [each for each in changed if each.rpartition(" ")[0] != FILE]
    return []


def _environment_changed(then: Path, now: Project, on: str) -> bool:
    with suppress(SettingsError), unpacked(then) as folder:
        before = load(folder, cluster=on).environment
        return _comparable(before) != _comparable(now.environment)
    return False


def _comparable(recipe: EnvironmentRecipe) -> EnvironmentRecipe:
    """Without paths on this computer, and without secrets, which no snapshot holds.

    The lists of packages are files of the code, and named as such.
    """
    plain = replace(recipe, here=None, hidden=Secrets(), secrets_from=None)
    return replace(plain, requirements="", conda="")
