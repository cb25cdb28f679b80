"""Wheels: every package that a job will install, found on its cluster or sent there."""

import json
import re
import shlex
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from rabaska.domain import markers, untrusted
from rabaska.domain.amounts import say_size
from rabaska.domain.projects import EnvironmentRecipe
from rabaska.environments import recipes
from rabaska.environments.download import FACTS as PYTHON_FACTS
from rabaska.environments.download import Target, download_command, find_pip, lacking, pip_command
from rabaska.environments.job_lines import BuildSite
from rabaska.environments.recipes import BuiltEnvironment
from rabaska.errors import EnvironmentFailed
from rabaska.node.environment.check_wheels import NEEDS_PIP, NOT_FOUND, WheelRequest
from rabaska.node.environment.pip_queries import is_hashed, lines
from rabaska.remote.place import Outcome, Parcel, quoted
from rabaska.remote.this_computer import Here
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.pip_here import chosen_here, nowhere, usual_target
from rabaska.steps.progress import Reporter, progress_of, report_if_slow

# What the node side answers; see `check_wheels` and `pack_environment` there.
RECORD = {
    "digest": re.compile("[0-9a-zA-Z_.-]{1,80}"),
    "files": int,
    "archive?": (bool, str, None),
    "maker?": str,
    "conda?": (bool, None),
    "relocate?": (bool, None),
    "room?": untrusted.SIZE,
}
_SOON = 2.0  # seconds; who has asked before gets the answer in less
_NAMES = [re.compile("[0-9a-zA-Z_.-]{1,100}")]
WHEELS = {**RECORD, "packages": [str], "source": str, "modules?": _NAMES, "unread?": _NAMES}
_NO_WHEEL = re.compile(r"No matching distribution found for (\S+)")
_MISSING = {**PYTHON_FACTS, "missing": [str], "said": str}


def find_wheels(
    recipe: EnvironmentRecipe, site: BuildSite, cluster: ConnectedCluster, reporter: Reporter
) -> BuiltEnvironment:
    """Make sure of every wheel that the job will install; EnvironmentFailed names what lacks."""
    wanted, sent = wanted_wheels(recipe, site), 0
    amount = cache(lambda: amount_of(recipe.requirements))

    def large() -> str:
        return amount() and f"packages: {amount()} to fetch, unless {cluster.name} has them"

    with report_if_slow(_SOON, large, reporter):
        outcome = _ask_for_wheels(recipe, site, cluster, wanted)
    if outcome.exit_code == NEEDS_PIP:
        send_pip(read_answer(outcome, cluster, PYTHON_FACTS), wanted, cluster, reporter)
        outcome = _ask_for_wheels(recipe, site, cluster, wanted)
    if outcome.exit_code == NOT_FOUND:
        answer = read_answer(outcome, cluster, _MISSING)
        sent = _send_wheels(answer, wanted, cluster, reporter, amount())
        outcome = _ask_for_wheels(recipe, site, cluster, wanted._replace(online=False))
    if outcome.exit_code == NOT_FOUND:
        raise _missing(read_answer(outcome, cluster, _MISSING), cluster)
    if outcome.exit_code != 0:
        raise build_failed(cluster, outcome)
    record = read_answer(outcome, cluster, WHEELS)
    found = replace(BuiltEnvironment.read(record, site.envs), sent=sent)
    reporter.step(_bill(record, found, in_job=not recipes.builds_once(recipe, site)))
    return found


def amount_of(requirements: str) -> str:
    """About how much pip would fetch, in words; "" where that is little.

    The build of a framework decides it, so pip is asked which one it would take.
    """
    # Thirty modules, for those who send wheels.
    from rabaska.checkup.check_builds import as_chosen, framework_lines, size_of
    from rabaska.checkup.pinned_packages import read

    listed = read(requirements)
    if not size_of(listed):
        return ""
    pins = chosen_here(requirements, framework_lines(requirements), usual_target())
    size = size_of(as_chosen(listed, pins))
    return f"about {say_size(size)}" if size else ""


def wanted_wheels(recipe: EnvironmentRecipe, site: BuildSite) -> WheelRequest:
    return WheelRequest(
        envs=site.envs,
        digest=recipes.digest(recipe, site),
        python=recipe.python,
        requirements=recipe.requirements,
        wheelhouse=list(site.wheelhouse),
        online=True,
    )


def send_pip(
    answer: Mapping[str, Any], wanted: WheelRequest, cluster: ConnectedCluster, reporter: Reporter
) -> None:
    """pip as its own wheel, for a Python that has none, or no way to bring it along."""
    python, name = answer["python"], cluster.name
    target = Target(python, answer["machine"], answer["libc"])
    reporter.step(f"pip: Python {python} on {name} cannot install it, so it is sent along")
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
        cluster.place.deliver([Parcel(wheel, wanted.pip)], cluster)


def _ask_for_wheels(
    recipe: EnvironmentRecipe, site: BuildSite, cluster: ConnectedCluster, wanted: WheelRequest
) -> Outcome:
    """One round trip; where all was found before, it only reads the record of that."""
    record = shlex.quote(wanted.path("json"))
    known = f"[ -e {record} ] && touch {record} && {{ cat {record}; exit 0; }}"
    return ask(recipe, site, cluster, wanted, before=known)


def ask(
    recipe: EnvironmentRecipe,
    site: BuildSite,
    cluster: ConnectedCluster,
    wanted: WheelRequest,
    *words: str,
    before: str = "true",
) -> Outcome:
    asking = quoted([*cluster.node, "wheels", *words])
    lines = [before, *recipes.on_login(recipe, site), asking]
    return cluster.run("\n".join(lines), feed=json.dumps(wanted._asdict()).encode())


def _bill(record: Mapping[str, Any], found: BuiltEnvironment, *, in_job: bool) -> str:
    own, count = 3 if found.archive else 2, len(record["packages"])
    made_of = f"{count} package{'s' if count > 1 else ''} from {record['source']}"
    files = f"; {own} files in the store, about {record['files']:,} per node" if in_job else ""
    return f"environment {record['digest']}: {made_of}{files}"


def _send_wheels(
    answer: Mapping[str, Any],
    wanted: WheelRequest,
    cluster: ConnectedCluster,
    reporter: Reporter,
    amount: str,
) -> int:
    """Fetch on this computer, for the Python and platform there, what lacks there; bytes sent."""
    target = Target(answer["python"], answer["machine"], answer["libc"])
    size = f" ({amount})" if amount else ""
    reporter.step(f"wheels: not all on {cluster.name}, so this computer fetches them{size}")
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "requirements.txt"
        text = lacking(wanted.requirements, answer["missing"])
        facts = markers.of_python(target.version, target.machine)
        requirements.write_text(markers.applicable(text, facts), "utf-8")
        wheels = Path(folder) / "wheels"
        wheels.mkdir()  # pip makes none where it has nothing to fetch
        command = download_command(target, requirements, wheels, alone=is_hashed(text))
        outcome = Here().run(quoted(command))
        if outcome.exit_code != 0:
            raise _nowhere(answer, wanted.requirements, target, cluster, outcome.complaint)
        archive = Path(folder) / "wheels.tar"
        with tarfile.open(archive, "w") as packed:
            for wheel in sorted(wheels.iterdir()):
                packed.add(wheel, wheel.name)
        parcel = Parcel(archive, wanted.archive)
        return cluster.place.deliver([parcel], cluster, progress_of("wheels", reporter)).missing


def _nowhere(
    answer: Mapping[str, Any],
    requirements: str,
    target: Target,
    cluster: ConnectedCluster,
    here: str,
) -> EnvironmentFailed:
    """Names only what has no wheel here either: a cluster without internet lacks everything."""
    own = [line for line in lines(requirements) if line in answer["missing"]]
    lacking = nowhere(requirements, own, target) if _NO_WHEEL.search(here) else ()
    if not lacking and (found := _NO_WHEEL.search(here)):
        lacking = (f"{found[1]}, which another package needs",)
    if lacking:
        return _missing({**answer, "missing": lacking, "said": ""}, cluster, here=here)
    return _missing(answer, cluster, here=here)


def _missing(
    answer: Mapping[str, Any], cluster: ConnectedCluster, here: str = ""
) -> EnvironmentFailed:
    names = ", ".join(answer["missing"]) or "a package that another one needs"
    said = [f"pip on {cluster.name} said: {answer['said']}"] if answer["said"] else []
    said += [f"pip on this computer said: {_last_error(here)}"] if here else []
    why = "\n  and ".join(said)
    return EnvironmentFailed(
        f"no wheel for Python {answer['python']} on {cluster.name}: {names}",
        why=why,
        hint="ask for another version in the requirements file, or for another `python` or "
        "`modules` under [environment]; nothing was submitted",
    )


def _last_error(said: str) -> str:
    errors = [line for line in said.splitlines() if line.startswith("ERROR")]
    return errors[-1] if errors else said.rpartition("\n")[2]


def read_answer(
    outcome: Outcome, cluster: ConnectedCluster, shape: untrusted.Shape
) -> dict[str, Any]:
    """Our own words print one line of JSON last, whatever modules print before it."""
    text = outcome.output.strip()
    last = text if text.startswith("{") else text.rpartition("\n")[2]
    try:
        answer: dict[str, Any] = untrusted.read(last, shape)
    except untrusted.Unexpected as problem:
        raise untrusted.unusable(cluster.name, problem) from problem
    return answer


def build_failed(cluster: ConnectedCluster, outcome: Outcome) -> EnvironmentFailed:
    return EnvironmentFailed(
        f"the environment could not be built on {cluster.name}",
        why=outcome.complaint,
        hint="correct `[environment]` in rabaska.toml or the requirements file it names",
    )
