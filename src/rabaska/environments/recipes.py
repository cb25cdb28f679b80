"""The kinds of environment: what each builds beforehand, and what each job does to use it."""

import hashlib
import json
import shlex
from dataclasses import dataclass

from rabaska.domain.projects import Recipe
from rabaska.domain.shellwords import expanding


@dataclass(frozen=True)
class Environment:
    """A recipe resolved for one cluster."""

    setup: tuple[str, ...]  # lines of the job script
    build: str = ""  # a script that makes it once, or nothing to make
    folder: str = ""  # where the build puts it


def environment(recipe: Recipe, envs: str, *, search_path: str = "") -> Environment:
    """What `recipe` means where built environments are kept in `envs`.

    `search_path` is the folder whose `python` the submitting shell would run; it only
    counts for the kind "current", and only where jobs run on the same computer.
    """
    before = [*_modules(recipe), *_variables(recipe)]
    if recipe.kind == "activate":
        return Environment(setup=(*before, _activation(recipe.path)))
    if recipe.kind == "virtualenv":
        folder = f"{envs}/{digest(recipe)}"
        setup = (*before, f"source {shlex.quote(folder + '/bin/activate')}")
        return Environment(setup=setup, build=_build_script(recipe, folder), folder=folder)
    current = [f'export PATH={shlex.quote(search_path)}:"$PATH"'] if search_path else []
    return Environment(setup=(*before, *current))


def digest(recipe: Recipe) -> str:
    """One name for one content: the same recipe is built once."""
    content = [recipe.requirements, recipe.python, recipe.modules]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _modules(recipe: Recipe) -> list[str]:
    if not recipe.modules:
        return []
    names = " ".join(shlex.quote(module) for module in recipe.modules)
    # Batch shells do not always define `module` (environment-modules gives 127 there).
    return [
        "type module >/dev/null 2>&1 || source /etc/profile",
        f"module load {names}",
    ]


def _variables(recipe: Recipe) -> list[str]:
    return [f"export {name}={shlex.quote(text)}" for name, text in sorted(recipe.variables.items())]


def _activation(path: str) -> str:
    if "/" in path:
        return f"source {expanding(path.rstrip('/') + '/bin/activate')}"
    return f'eval "$(conda shell.bash hook)" && conda activate {shlex.quote(path)}'


def _build_script(recipe: Recipe, folder: str) -> str:
    """Build once: the mark `complete` is written last, so a killed build is begun again."""
    where = shlex.quote(folder)
    lines = [
        "set -e",
        f"[ -e {where}/complete ] && exit 0",
        *_modules(recipe),
        f"rm -rf {where}",
        f"mkdir -p {where}",
        f"cat > {where}/requirements.txt",
        f"{shlex.quote(recipe.python)} -m venv {where}",
        f"{where}/bin/pip install --disable-pip-version-check --quiet -r {where}/requirements.txt",
        f": > {where}/complete",
    ]
    return "\n".join(lines)
