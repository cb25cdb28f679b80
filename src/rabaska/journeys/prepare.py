"""Prepare: the environment of a project, built once on its cluster."""

import os
import shutil
from pathlib import Path

from rabaska.domain.projects import Recipe
from rabaska.environments.recipes import Environment, environment
from rabaska.errors import EnvironmentFailed
from rabaska.journeys.station import Station
from rabaska.journeys.telling import Teller


def resolve(recipe: Recipe, station: Station) -> Environment:
    """What the recipe means on this cluster; nothing is built yet."""
    search_path = _shells_python() if station.cluster.is_here else ""
    return environment(recipe, f"{station.store}/envs", search_path=search_path)


def prepare(recipe: Recipe, station: Station, teller: Teller) -> Environment:
    ready = resolve(recipe, station)
    if not ready.build:
        return ready
    teller.step(f"environment {Path(ready.folder).name}: built once on {station.cluster.name}")
    outcome = station.place.run(ready.build, feed=recipe.requirements.encode())
    if outcome.exit_code != 0:
        raise EnvironmentFailed(
            f"the environment could not be built on {station.cluster.name}",
            why=outcome.complaint,
            hint="mend `[environment]` in rabaska.toml or the requirements file it names",
        )
    return ready


def _shells_python() -> str:
    """The folder of the `python` that the submitting shell would run; its venv travels so."""
    found = shutil.which("python") or shutil.which("python3")
    return os.path.dirname(found) if found else ""  # noqa: PTH120 - the link itself, unresolved
