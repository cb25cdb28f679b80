"""A conda environment, solved and built on the cluster before its first job is submitted."""

import difflib
import json
import re
import shlex

from rabaska.domain.amounts import say_size
from rabaska.domain.projects import EnvironmentRecipe
from rabaska.environments import recipes
from rabaska.environments.job_lines import BuildSite
from rabaska.environments.recipes import BuiltEnvironment
from rabaska.errors import EnvironmentFailed
from rabaska.node.environment.make_conda import NO_CONDA, CondaRequest
from rabaska.remote.place import quoted
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.progress import Reporter
from rabaska.steps.wheels import RECORD, read_answer

_BUILT = {**RECORD, "size?": int, "tool?": str}


def build_conda(
    recipe: EnvironmentRecipe, site: BuildSite, cluster: ConnectedCluster, reporter: Reporter
) -> BuiltEnvironment:
    """One file in the store; EnvironmentFailed where it cannot be made."""
    name = recipes.digest(recipe, site)
    record_there = f"{site.envs}/{name}.json"
    known = cluster.place.run(
        f"touch -c {quoted([record_there])}; cat {quoted([record_there])} 2>/dev/null"
    )
    if known.exit_code == 0:
        return BuiltEnvironment.read(read_answer(known, cluster, _BUILT), site.envs)
    reporter.step(f"environment {name}: conda builds {recipe.file} once on {cluster.name}")
    wanted = CondaRequest(
        site.envs, name, recipe.file, recipe.conda, recipes.conda_variables(recipe)
    )
    lines = [*recipes.on_login(recipe, site), shlex.join([*cluster.node, "conda"])]
    outcome = cluster.run("\n".join(lines), feed=json.dumps(wanted._asdict()).encode())
    if outcome.exit_code == NO_CONDA:
        raise _no_conda(cluster)
    if outcome.exit_code != 0:
        raise EnvironmentFailed(
            f"conda could not build {recipe.file} on {cluster.name}",
            why=outcome.complaint,
            hint=f"correct {recipe.file}; where {cluster.name} has no internet, pack the "
            'environment here (conda-pack) and write `kind = "packed"` and its `path`; nothing was '
            "submitted",
        )
    record = read_answer(outcome, cluster, _BUILT)
    reporter.step(
        f"environment {name}: 1 file of {say_size(record['size'])} in the store, "
        f"{record['files']:,} per node"
    )
    return BuiltEnvironment.read(record, site.envs)


def _no_conda(cluster: ConnectedCluster) -> EnvironmentFailed:
    return EnvironmentFailed(
        f"there is no micromamba, mamba or conda on {cluster.name}",
        why="none of them is in PATH once the modules are loaded",
        hint='name the module that has it, as in `modules = ["miniforge"]` under [environment], or '
        "put micromamba, which is one file, into a folder of your PATH there; nothing was "
        "submitted",
    )


def conda_hint(recipe: EnvironmentRecipe, site: BuildSite, cluster: ConnectedCluster) -> str:
    """What to do about the name of a conda environment that cannot be activated."""
    lines = [*recipes.on_login(recipe, site), "command -v conda >&2 || exit 3", "conda env list"]
    listed = cluster.place.run("\n".join(lines))
    if listed.exit_code != 0:
        return (
            f"`{recipe.path}` is taken for the name of a conda environment, and there is no conda: "
            'name the module that brings it, as in `modules = ["miniforge"]` under [environment], '
            "or write the folder of the environment as `path`; nothing was submitted"
        )
    names = re.findall(r"^([\w.-]+)\s+(?:\*\s+)?/", listed.output, re.MULTILINE)
    known = f"conda on {cluster.name} has {', '.join(names)}" if names else "conda has none there"
    near = difflib.get_close_matches(recipe.path, names, n=1)
    first = f'write `path = "{near[0]}"` under [environment]; ' if near else ""
    return (
        f'{first}{known}; or write `kind = "conda"` and `file = "environment.yml"` there, and '
        "it is built; nothing was submitted"
    )
