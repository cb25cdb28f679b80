"""Commands that advise: doctor, explain, plan."""

import sys
from pathlib import Path
from typing import Any

import click

from rabaska.cli import render_advice, terminal
from rabaska.cli.options import chosen_run, found_on_option, json_option, on_option
from rabaska.records.home import home

_offline = click.option(
    "--offline", is_flag=True, help="Do not ask the cluster; its profile must do."
)


@click.command()
@click.argument("what", nargs=-1, metavar="[RUN|TEXT]")
@click.option(
    "--bundle",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write what the site's support would ask for into this folder.",
)
@found_on_option
@json_option
def explain(what: tuple[str, ...], *, bundle: Path | None, on: str, as_json: bool) -> None:
    """Say what a message means and what to do; without one, why the newest run stopped.

    `-` reads the message from standard input.
    """
    from rabaska.journeys import explain as journey

    words = " ".join(what)
    record = chosen_run(words, on) if on or not what else journey.run_meant(words, home())
    if record:
        told = journey.explain_run(record, home())
    else:
        told = journey.explain_text(_read_all() if words == "-" else words)
    written = journey.support_bundle(told, bundle, home(), record) if bundle else ()
    if as_json:
        terminal.json({"explanation": told, "bundle": written})
        return
    render_advice.explanation(told, bundled=bool(written))
    if written:
        terminal.note(f"wrote {len(written)} files for the site's support in {bundle}")


@click.command()
@on_option
@click.option("--fix", is_flag=True, help="Mend what can be mended without harm.")
@_offline
@json_option
def doctor(*, on: str, fix: bool, offline: bool, as_json: bool) -> int:
    """Look for what would go wrong: code, data, environment, and what is asked of the cluster.

    The cluster itself is asked too, and shown the job, and nothing is submitted. Exit code 1 when
    something was found that would make the run fail.
    """
    from rabaska.cli.projects import project_for
    from rabaska.journeys import doctor as journey

    project = project_for(on, {})
    told = journey.diagnose(project, on, home(), offline=offline)
    done = journey.repair(project, told.found) if fix else ()
    left = tuple(each for each in told.found if not (fix and each.safe_fix))
    if as_json:
        terminal.json({"findings": told.found, "mended": done, "unasked": told.unasked})
    else:
        render_advice.findings(left, done)
        render_advice.unasked(on, told.unasked)
    return int(any(each.serious for each in left))


@click.command()
@click.option(
    "--on",
    multiple=True,
    metavar="CLUSTER",
    help="A cluster to look at; may be repeated. Without one: every live one.",
)
@click.option("--total", metavar="TIME", help="How long the whole training takes: 60h, 20d.")
@click.option("--steps", type=click.IntRange(1), help="Or its steps, at the pace measured before.")
@click.option("--epochs", type=click.IntRange(1), help="Or its epochs, in the same way.")
@click.option(
    "--measure",
    metavar="TIME",
    help="First run it so long here and on each cluster named, to see how fast it goes.",
)
@click.option("--gpus", type=click.IntRange(0), help="GPUs in all; default: as rabaska.toml says.")
@click.option("--gpu", default="", metavar="KIND", help="Only this kind of GPU: k40, v100, h100.")
@_offline
@json_option
def plan(*, on: tuple[str, ...], as_json: bool, **wishes: Any) -> int:
    """Which queue, which GPU, how many jobs, what goes with them, where the data goes, the cost.

    Clusters that are named are asked how they are today and when such a job might start; several
    stand side by side. Exit code 1 when none of them can do it.
    """
    from rabaska.journeys import plan as journey

    with terminal.steps(quiet=as_json) as teller:
        told = journey.plan(Path.cwd(), on, journey.PlanOptions(**wishes), home(), teller)
    terminal.json(told) if as_json else render_advice.plans(told)
    return int(not any(each.outlook.choice for each in told.plans))


def _read_all() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace")
