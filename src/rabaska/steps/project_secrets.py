"""The secrets of a project: found on this computer when a run needs them, and told by name only."""

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rabaska.domain.projects import EnvironmentRecipe
from rabaska.domain.secrets import Secrets, read_lines
from rabaska.errors import SettingsError
from rabaska.steps.progress import Reporter


def collected(
    recipe: EnvironmentRecipe, environment: Mapping[str, str], reporter: Reporter
) -> Secrets:
    """Every secret that the program is promised; SettingsError names those that are missing."""
    if recipe.hidden:
        likely = ", ".join(recipe.hidden.names)
        reporter.warn(
            f"{likely} in `variables` looks like a secret, so it travels in a file that only you "
            "can read; name it in `secrets` under [environment] to keep it out of rabaska.toml"
        )
    written = _written(recipe.secrets_from) if recipe.secrets_from else {}
    names = recipe.secrets or tuple(written)
    found = {name: written.get(name) or environment.get(name, "") for name in names}
    missing = [name for name, value in found.items() if not value]
    if missing:
        raise SettingsError(
            f"there is no value for the secret {', '.join(missing)}",
            why="this shell has no such variable"
            + (f", and {recipe.secrets_from} no such line" if recipe.secrets_from else ""),
            hint=f"`export {missing[0]}=…` before `rabaska run`, or name a file with the line "
            f"`{missing[0]}=…` as `secrets_from` under [environment]",
        )
    return recipe.hidden | Secrets(found)


def promised(recipe: EnvironmentRecipe) -> Secrets:
    """The same without their values, for a plan that is only shown."""
    return recipe.hidden | Secrets(dict.fromkeys(recipe.secrets, ""))


def known(recipe: EnvironmentRecipe, environment: Mapping[str, str]) -> Secrets:
    """Those that have a value here and now; where one is missing, `collected` says so."""
    written: dict[str, str] = {}
    with suppress(SettingsError):
        written = _written(recipe.secrets_from) if recipe.secrets_from else {}
    names = recipe.secrets or tuple(written)
    found = {name: written.get(name) or environment.get(name, "") for name in names}
    return recipe.hidden | Secrets(found)


def _written(path: Path) -> dict[str, str]:
    """The variables in a file that nobody else can read."""
    try:
        found = path.stat()
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise SettingsError(
            f"the secrets in {path} cannot be read",
            why=str(getattr(problem, "strerror", "") or problem),
            hint="see `secrets_from` under [environment] in rabaska.toml",
        ) from problem
    if stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid not in (os.getuid(), 0):
        raise SettingsError(
            f"the secrets in {path} are open to others",
            why=f"its mode is {stat.S_IMODE(found.st_mode):04o}",
            hint=f"`chmod 600 {path}`, and think of the keys in it as known to others",
        )
    return dict(read_lines(text))
