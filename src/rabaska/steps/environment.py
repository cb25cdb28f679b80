"""Prepare: the environment of a project, checked or built on its cluster before anything waits."""

import json
import os
import posixpath
import re
import shlex
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rabaska.domain import untrusted
from rabaska.domain.data_placement import shared_folder
from rabaska.domain.projects import EnvironmentRecipe
from rabaska.domain.shell_words import expanding
from rabaska.environments import recipes
from rabaska.environments.download import FACTS as OF_PYTHON
from rabaska.environments.download import Target, download_command, find_pip, lacking, pip_command
from rabaska.environments.recipes import BuildSite, BuiltEnvironment, Environment
from rabaska.errors import EnvironmentFailed
from rabaska.node.environment import pack_environment
from rabaska.node.environment.check_wheels import BY_HAND, FACTS, NEEDS_PIP, NOT_FOUND, Wanted
from rabaska.remote.place import Outcome, Parcel, quoted
from rabaska.remote.this_computer import Here
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.progress import Reporter, progress_of

# What the node side answers; see `wheels` and `frozen` there.
_RECORD = {
    "digest": re.compile("[0-9a-zA-Z_.-]{1,80}"),
    "files": int,
    "archive?": (bool, str, None),
    "maker?": str,
    "conda?": (bool, None),
}
_WHEELS = {**_RECORD, "packages": [str], "source": str}
_MISSING = {**OF_PYTHON, "missing": [str], "said": str}
_BY_SRUN = 'srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1'


def resolve(recipe: EnvironmentRecipe, station: ConnectedCluster, *, nodes: int = 1) -> Environment:
    """What the recipe means on this cluster; nothing is built yet."""
    site = site_of(station, nodes=nodes)
    if recipe.kind not in ("virtualenv", "packed"):
        return recipes.environment(recipe, site)
    name = (
        pack_environment.fingerprint(str(recipe.here))
        if recipe.here
        else recipes.digest(recipe, site)
    )
    known = station.place.run(f"cat {quoted([f'{site.envs}/{name}.json'])} 2>/dev/null")
    # Before the first run nobody has asked the cluster; then the usual steps are shown.
    found = (
        BuiltEnvironment.read(_answer(known, station, _RECORD), site.envs)
        if known.exit_code == 0
        else None
    )
    return recipes.environment(recipe, site, found)


def prepare(
    recipe: EnvironmentRecipe, station: ConnectedCluster, teller: Reporter, *, nodes: int = 1
) -> Environment:
    """The same, and everything made or checked that a job could fail on after a night's wait."""
    site = site_of(station, nodes=nodes)
    if recipe.kind == "virtualenv" and not recipes.builds_once(recipe, site):
        return recipes.environment(recipe, site, _wheels(recipe, site, station, teller))
    if recipe.kind == "packed":
        return recipes.environment(recipe, site, _packed(recipe, site, station, teller))
    ready = recipes.environment(recipe, site)
    if recipe.kind == "activate":
        _try(recipe, site, station)
    if ready.build:
        return _build(ready, recipe, site, station, teller)
    return ready


def site_of(station: ConnectedCluster, *, nodes: int) -> BuildSite:
    cluster = station.cluster
    return BuildSite(
        envs=f"{station.store}/envs",
        local=cluster.local_space or station.scheduler.in_job().local_space,
        modules=cluster.modules,
        wheelhouse=cluster.wheelhouse,
        every_node=_every_node(station, nodes) if nodes > 1 else "",
        program=station.node,
        local_is_shared=bool(shared_folder(cluster)),
        search_path=_shells_python() if cluster.is_here else "",
        here=cluster.is_here,
    )


def _every_node(station: ConnectedCluster, nodes: int) -> str:
    """Words that run a command once on each node of a job."""
    reach = station.scheduler.capabilities.reach
    if reach in ("srun", ""):
        return _BY_SRUN if reach else ""
    return quoted([*station.node, "on-nodes", f"--reach={reach}", f"--nodes={nodes}", "--"])


def _shells_python() -> str:
    """The folder of the `python` that the submitting shell would run; its venv travels so."""
    found = shutil.which("python") or shutil.which("python3")
    return os.path.dirname(found) if found else ""  # noqa: PTH120 - the link itself, unresolved


def _build(
    ready: Environment,
    recipe: EnvironmentRecipe,
    site: BuildSite,
    station: ConnectedCluster,
    teller: Reporter,
) -> Environment:
    """Make it one time in the store, and say what that costs in files."""
    name = posixpath.basename(ready.folder)
    teller.step(f"environment {name}: built once on {station.cluster.name}")
    outcome = station.place.run(ready.build, feed=recipe.requirements.encode())
    if outcome.exit_code == NEEDS_PIP:
        wanted = _wanted(recipe, site)
        facts = _ask(recipe, site, station, wanted, FACTS)
        if facts.exit_code != NEEDS_PIP:
            raise _failed(station, outcome if facts.exit_code == 0 else facts)
        _send_pip(_answer(facts, station, OF_PYTHON), wanted, station, teller)
        by_hand = BuiltEnvironment(maker=BY_HAND, pip=wanted.pip)
        ready = recipes.environment(recipe, site, by_hand)
        station.send_program()
        outcome = station.place.run(ready.build, feed=recipe.requirements.encode())
    if outcome.exit_code != 0:
        raise _failed(station, outcome)
    files = outcome.output.strip().rpartition("\n")[2]
    if untrusted.count(files) is not None:
        teller.step(f"environment {name}: {int(files):,} files of the store")
    return ready


def _try(recipe: EnvironmentRecipe, site: BuildSite, station: ConnectedCluster) -> None:
    lines = [*recipes.on_login(recipe, site), f"{recipes.activation(recipe.path)} || exit 1"]
    outcome = station.place.run("\n".join([*lines, "python --version"]))
    if outcome.exit_code != 0:
        raise EnvironmentFailed(
            f"the environment `{recipe.path}` cannot be activated on {station.cluster.name}",
            why=outcome.complaint,
            hint="`path` under [environment] is as the cluster sees it; modules it needs go into "
            "`modules`",
        )


def _wheels(
    recipe: EnvironmentRecipe, site: BuildSite, station: ConnectedCluster, teller: Reporter
) -> BuiltEnvironment:
    """Make sure of every wheel that the job will install; EnvironmentFailed names what lacks."""
    wanted = _wanted(recipe, site)
    outcome = _ask_for_wheels(recipe, site, station, wanted)
    if outcome.exit_code == NEEDS_PIP:
        _send_pip(_answer(outcome, station, OF_PYTHON), wanted, station, teller)
        outcome = _ask_for_wheels(recipe, site, station, wanted)
    if outcome.exit_code == NOT_FOUND:
        answer = _answer(outcome, station, _MISSING)
        _send_wheels(answer, wanted, station, teller)
        outcome = _ask_for_wheels(recipe, site, station, wanted._replace(online=False))
    if outcome.exit_code == NOT_FOUND:
        raise _missing(_answer(outcome, station, _MISSING), station)
    if outcome.exit_code != 0:
        raise _failed(station, outcome)
    record = _answer(outcome, station, _WHEELS)
    found = BuiltEnvironment.read(record, site.envs)
    teller.step(_bill(record, found))
    return found


def _wanted(recipe: EnvironmentRecipe, site: BuildSite) -> Wanted:
    return Wanted(
        envs=site.envs,
        digest=recipes.digest(recipe, site),
        python=recipe.python,
        requirements=recipe.requirements,
        wheelhouse=list(site.wheelhouse),
        online=True,
    )


def _send_pip(
    answer: Mapping[str, Any], wanted: Wanted, station: ConnectedCluster, teller: Reporter
) -> None:
    """pip as its own wheel, for a Python that has none, or no way to bring it along."""
    python, name = answer["python"], station.cluster.name
    target = Target(python, answer["machine"], answer["libc"])
    teller.step(f"pip: Python {python} on {name} cannot install it, so it is sent along")
    with tempfile.TemporaryDirectory() as folder:
        wheel, said = find_pip(target.python, Path(folder)), ""
        if wheel is None:
            outcome = Here().run(quoted(pip_command(target.python, Path(folder, "fetched"))))
            wheel = next(Path(folder, "fetched").glob("pip-*.whl"), None)
            said = f"pip on this computer said: {_last_error(outcome.complaint)}"
        if wheel is None:
            raise EnvironmentFailed(
                f"Python {python} on {name} has no pip, and this computer has none for it",
                why=said,
                hint="name another `python` under [environment], or `modules` that bring one with "
                f"pip (`rabaska clusters check {name}` lists the Pythons there)",
            )
        station.place.deliver([Parcel(wheel, wanted.pip)], station)


def _ask_for_wheels(
    recipe: EnvironmentRecipe, site: BuildSite, station: ConnectedCluster, wanted: Wanted
) -> Outcome:
    """One round trip; where all was found before, it only reads the record of that."""
    record = shlex.quote(wanted.path("json"))
    known = f"[ -e {record} ] && touch {record} && {{ cat {record}; exit 0; }}"
    return _ask(recipe, site, station, wanted, before=known)


def _ask(
    recipe: EnvironmentRecipe,
    site: BuildSite,
    station: ConnectedCluster,
    wanted: Wanted,
    *words: str,
    before: str = "true",
) -> Outcome:
    asking = quoted([*station.node, "wheels", *words])
    lines = [before, *recipes.on_login(recipe, site), asking]
    return station.run("\n".join(lines), feed=json.dumps(wanted._asdict()).encode())


def _bill(record: Mapping[str, Any], found: BuiltEnvironment) -> str:
    own, count = 3 if found.archive else 2, len(record["packages"])
    return (
        f"environment {record['digest']}: {count} package{'s' if count > 1 else ''} from "
        f"{record['source']}; {own} files of the store, about {record['files']:,} on the node's "
        "own disk"
    )


def _send_wheels(
    answer: Mapping[str, Any], wanted: Wanted, station: ConnectedCluster, teller: Reporter
) -> None:
    """Fetch on this computer, for the Python and platform there, what lacks there."""
    target = Target(answer["python"], answer["machine"], answer["libc"])
    teller.step(f"wheels: not all on {station.cluster.name}, so this computer fetches them")
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text(lacking(wanted.requirements, answer["missing"]), "utf-8")
        wheels = Path(folder) / "wheels"
        wheels.mkdir()  # pip makes none where it has nothing to fetch
        command = download_command(target, requirements, wheels)
        outcome = Here().run(quoted(command))
        if outcome.exit_code != 0:
            raise _missing(answer, station, here=outcome.complaint)
        archive = Path(folder) / "wheels.tar"
        with tarfile.open(archive, "w") as packed:
            for wheel in sorted(wheels.iterdir()):
                packed.add(wheel, wheel.name)
        parcel = Parcel(archive, wanted.archive)
        station.place.deliver([parcel], station, progress_of("wheels", teller))


def _missing(
    answer: Mapping[str, Any], station: ConnectedCluster, here: str = ""
) -> EnvironmentFailed:
    names = ", ".join(answer["missing"]) or "a package that another one needs"
    why = f"pip on {station.cluster.name} said: {answer['said']}"
    if here:
        why += f"\n  and pip on this computer said: {_last_error(here)}"
    return EnvironmentFailed(
        f"no wheel for Python {answer['python']} on {station.cluster.name}: {names}",
        why=why,
        hint="ask for another version in the requirements file, or for another `python` or "
        "`modules` under [environment]; nothing was submitted",
    )


def _last_error(said: str) -> str:
    errors = [line for line in said.splitlines() if line.startswith("ERROR")]
    return errors[-1] if errors else said.rpartition("\n")[2]


def _packed(
    recipe: EnvironmentRecipe, site: BuildSite, station: ConnectedCluster, teller: Reporter
) -> BuiltEnvironment:
    """One file in the store, made of a folder or sent as it is."""
    if recipe.here is not None:
        record = _send_packed(recipe.here, site, station, teller)
    else:
        path = expanding(recipe.path)
        outcome = station.run(
            f"{quoted([*station.node, 'freeze'])} {path} {quoted([site.envs])}",
        )
        if outcome.exit_code != 0:
            raise _failed(station, outcome)
        record = _answer(outcome, station, _RECORD)
    teller.step(
        f"environment {record['digest']}: 1 file of the store, {record['files']:,} on the "
        "node's own disk"
    )
    return BuiltEnvironment.read(record, site.envs)


def _send_packed(
    source: Path, site: BuildSite, station: ConnectedCluster, teller: Reporter
) -> dict[str, Any]:
    try:
        name = pack_environment.fingerprint(str(source))
        record_there = f"{site.envs}/{name}.json"
        known = station.place.run(
            f"touch -c {quoted([record_there])}; cat {quoted([record_there])}"
        )
        if known.exit_code == 0:
            return _answer(known, station, _RECORD)
        with tempfile.TemporaryDirectory() as folder:
            record = pack_environment.freeze(str(source), folder, name)
            archive = f"{site.envs}/{name}{''.join(source.suffixes[-2:]) or '.tar'}"
            parcel = Parcel(Path(record["archive"]), archive)
            station.place.deliver([parcel], station, progress_of(source.name, teller))
    except (OSError, pack_environment.NotAnEnvironment, tarfile.TarError) as problem:
        raise EnvironmentFailed(
            f"{source} cannot be packed", why=str(problem), hint="see `path` under [environment]"
        ) from problem
    record["archive"] = archive
    partial = quoted([f"{record_there}.partial"])
    station.place.run(
        f"cat > {partial} && mv {partial} {quoted([record_there])}",
        feed=json.dumps(record).encode(),
    )
    return record


def _answer(outcome: Outcome, station: ConnectedCluster, shape: untrusted.Shape) -> dict[str, Any]:
    """Our own words print one line of JSON last, whatever modules print before it."""
    text = outcome.output.strip()
    last = text if text.startswith("{") else text.rpartition("\n")[2]
    try:
        answer: dict[str, Any] = untrusted.read(last, shape)
    except untrusted.Unexpected as problem:
        raise untrusted.unusable(station.cluster.name, problem) from problem
    return answer


def _failed(station: ConnectedCluster, outcome: Outcome) -> EnvironmentFailed:
    return EnvironmentFailed(
        f"the environment could not be built on {station.cluster.name}",
        why=outcome.complaint,
        hint="mend `[environment]` in rabaska.toml or the requirements file it names",
    )
