"""The environment of a run: prepared at the site, with its secrets kept apart."""

import json
import os
import posixpath
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rabaska.domain import untrusted
from rabaska.domain.data_placement import shared_folder
from rabaska.domain.projects import EnvironmentRecipe
from rabaska.domain.secrets import Secrets, read_lines
from rabaska.domain.shell_words import expanding
from rabaska.environments import recipes
from rabaska.environments.download import FACTS as PYTHON_FACTS
from rabaska.environments.job_lines import BuildSite
from rabaska.environments.recipes import BuiltEnvironment, Environment
from rabaska.errors import EnvironmentFailed, SettingsError
from rabaska.node.environment import pack_environment
from rabaska.node.environment.check_wheels import BY_HAND, FACTS, NEEDS_PIP
from rabaska.remote.place import Parcel, quoted
from rabaska.steps.conda import build_conda, conda_hint
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.image import bring_image
from rabaska.steps.progress import Reporter, progress_of
from rabaska.steps.wheels import (
    RECORD,
    ask,
    build_failed,
    find_wheels,
    read_answer,
    send_pip,
    wanted_wheels,
)

_BY_SRUN = 'srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1'


def resolve(recipe: EnvironmentRecipe, cluster: ConnectedCluster, *, nodes: int = 1) -> Environment:
    """What the recipe means on this cluster; nothing is built yet."""
    site = site_of(cluster, nodes=nodes)
    if recipe.kind not in ("virtualenv", "packed", "conda"):
        return recipes.environment(recipe, site)
    name = (
        pack_environment.fingerprint(str(recipe.here))
        if recipe.kind == "packed" and recipe.here
        else recipes.digest(recipe, site)
    )
    known = cluster.place.run(f"cat {quoted([f'{site.envs}/{name}.json'])} 2>/dev/null")
    # Before the first run nobody has asked the cluster; then the usual steps are shown.
    found = (
        BuiltEnvironment.read(read_answer(known, cluster, RECORD), site.envs)
        if known.exit_code == 0
        else None
    )
    return recipes.environment(recipe, site, found)


def prepare(
    recipe: EnvironmentRecipe, cluster: ConnectedCluster, reporter: Reporter, *, nodes: int = 1
) -> Environment:
    """The same, and everything made or checked that a job could fail on after a night's wait."""
    site = site_of(cluster, nodes=nodes)
    # On this computer pip finds all it needs by itself, as its user is used to.
    if recipe.kind == "virtualenv" and not (site.here and recipes.builds_once(recipe, site)):
        found = find_wheels(recipe, site, cluster, reporter)
        ready = recipes.environment(recipe, site, found)
        return _build(ready, recipe, site, cluster, reporter) if ready.build else ready
    if recipe.kind == "packed":
        return recipes.environment(recipe, site, _packed(recipe, site, cluster, reporter))
    if recipe.kind == "conda":
        return recipes.environment(recipe, site, build_conda(recipe, site, cluster, reporter))
    if recipe.kind == "container":
        return recipes.environment(recipe, site, bring_image(recipe, site, cluster, reporter))
    ready = recipes.environment(recipe, site)
    if recipe.kind == "activate":
        _try(recipe, site, cluster)
    if ready.build:
        return _build(ready, recipe, site, cluster, reporter)
    return ready


def site_of(cluster: ConnectedCluster, *, nodes: int) -> BuildSite:
    profile = cluster.cluster
    return BuildSite(
        envs=f"{cluster.store}/envs",
        local=profile.local_space or cluster.scheduler.in_job().local_space,
        modules=profile.modules,
        wheelhouse=profile.wheelhouse,
        every_node=_every_node(cluster, nodes) if nodes > 1 else "",
        program=cluster.node,
        local_is_shared=bool(shared_folder(profile)),
        search_path=_shells_python() if profile.is_here else "",
        here=profile.is_here,
    )


def _every_node(cluster: ConnectedCluster, nodes: int) -> str:
    """Words that run a command once on each node of a job."""
    reach = cluster.scheduler.capabilities.reach
    if reach in ("srun", ""):
        return _BY_SRUN if reach else ""
    return quoted([*cluster.node, "on-nodes", f"--reach={reach}", f"--nodes={nodes}", "--"])


def _shells_python() -> str:
    """The folder of the `python` that the submitting shell would run; its venv travels so."""
    found = shutil.which("python") or shutil.which("python3")
    return os.path.dirname(found) if found else ""  # noqa: PTH120 - the link itself, unresolved


def _build(
    ready: Environment,
    recipe: EnvironmentRecipe,
    site: BuildSite,
    cluster: ConnectedCluster,
    reporter: Reporter,
) -> Environment:
    """Make it one time in the store, and say what that costs in files."""
    name = posixpath.basename(ready.folder)
    reporter.step(f"environment {name}: built once on {cluster.name}")
    outcome = cluster.place.run(ready.build, feed=recipe.requirements.encode())
    if outcome.exit_code == NEEDS_PIP and ready.built is None:
        wanted = wanted_wheels(recipe, site)
        facts = ask(recipe, site, cluster, wanted, FACTS)
        if facts.exit_code != NEEDS_PIP:
            raise build_failed(cluster, outcome if facts.exit_code == 0 else facts)
        send_pip(read_answer(facts, cluster, PYTHON_FACTS), wanted, cluster, reporter)
        by_hand = BuiltEnvironment(maker=BY_HAND, pip=wanted.pip)
        ready = recipes.environment(recipe, site, by_hand)
        cluster.send_program()
        outcome = cluster.place.run(ready.build, feed=recipe.requirements.encode())
    if outcome.exit_code != 0:
        raise build_failed(cluster, outcome)
    files = outcome.output.strip().rpartition("\n")[2]
    if untrusted.count(files) is not None:
        reporter.step(f"environment {name}: {int(files):,} files in the store")
    return ready


def _try(recipe: EnvironmentRecipe, site: BuildSite, cluster: ConnectedCluster) -> None:
    lines = [*recipes.on_login(recipe, site), f"{recipes.activation(recipe.path)} || exit 1"]
    outcome = cluster.place.run("\n".join([*lines, "python --version"]))
    if outcome.exit_code != 0:
        hint = (
            "`path` under [environment] is as the cluster sees it; modules it needs go into "
            "`modules`"
        )
        raise EnvironmentFailed(
            f"the environment `{recipe.path}` cannot be activated on {cluster.name}",
            why=outcome.complaint,
            hint=hint if "/" in recipe.path else conda_hint(recipe, site, cluster),
        )


def _packed(
    recipe: EnvironmentRecipe, site: BuildSite, cluster: ConnectedCluster, reporter: Reporter
) -> BuiltEnvironment:
    """One file in the store, made of a folder or sent as it is."""
    if recipe.here is not None:
        record = _send_packed(recipe.here, site, cluster, reporter)
    else:
        path = expanding(recipe.path)
        outcome = cluster.run(
            f"{quoted([*cluster.node, 'freeze'])} {path} {quoted([site.envs])}",
        )
        if outcome.exit_code != 0:
            raise build_failed(cluster, outcome)
        record = read_answer(outcome, cluster, RECORD)
    reporter.step(
        f"environment {record['digest']}: 1 file in the store, {record['files']:,} per node"
    )
    return BuiltEnvironment.read(record, site.envs)


def _send_packed(
    source: Path, site: BuildSite, cluster: ConnectedCluster, reporter: Reporter
) -> dict[str, Any]:
    try:
        name = pack_environment.fingerprint(str(source))
        record_there = f"{site.envs}/{name}.json"
        known = cluster.place.run(
            f"touch -c {quoted([record_there])}; cat {quoted([record_there])}"
        )
        if known.exit_code == 0:
            return read_answer(known, cluster, RECORD)
        with tempfile.TemporaryDirectory() as folder:
            record = pack_environment.freeze(str(source), folder, name)
            archive = f"{site.envs}/{name}{''.join(source.suffixes[-2:]) or '.tar'}"
            parcel = Parcel(Path(record["archive"]), archive)
            cluster.place.deliver([parcel], cluster, progress_of(source.name, reporter))
    except (OSError, pack_environment.NotAnEnvironment, tarfile.TarError) as problem:
        raise EnvironmentFailed(
            f"{source} cannot be packed", why=str(problem), hint="see `path` under [environment]"
        ) from problem
    record["archive"] = archive
    partial = quoted([f"{record_there}.partial"])
    cluster.place.run(
        f"cat > {partial} && mv {partial} {quoted([record_there])}",
        feed=json.dumps(record).encode(),
    )
    return record


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
    return recipe.hidden | recipe.handed | Secrets(found)


def promised(recipe: EnvironmentRecipe) -> Secrets:
    """The same without their values, for a plan that is only shown."""
    return recipe.hidden | recipe.handed | Secrets(dict.fromkeys(recipe.secrets, ""))


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
