"""Commands that advise: doctor, explain, plan."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rabaska.cli import render_advice, terminal
from rabaska.cli.find_run import chosen_run
from rabaska.cli.options import found_on_option, json_option, on_option
from rabaska.cli.text import plain
from rabaska.records.home import home
from rabaska.views.advice import explanations_view, finding_views, not_contacted, plans_view
from rabaska.views.words import counted

_offline = click.option(
    "--offline", is_flag=True, help="Do not contact the cluster; use its profile."
)


@click.command()
@click.argument("what", nargs=-1, metavar="[RUN|TEXT]")
@click.option(
    "--bundle",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Collect in this folder what the site's support needs.",
)
@found_on_option
@json_option
def explain(what: tuple[str, ...], *, bundle: Path | None, on: str, as_json: bool) -> None:
    """Explain a message, or why a run stopped, and what to do; by default the newest run.

    `-` reads the message from standard input.
    """
    from rabaska.journeys import explain as journey

    words = " ".join(what)
    record = chosen_run(words, on) if on or not what else journey.run_meant(words, home())
    if record:
        explanation = journey.explain_run(record, home())
    else:
        explanation = journey.explain_text(_read_all() if words == "-" else words)
    written = journey.support_bundle(explanation, bundle, home(), record) if bundle else ()
    view = explanations_view(explanation)
    if as_json:
        told = replace(explanation, stands=None)
        terminal.json({"explanation": told, "bundle": written, "view": view})
        return
    render_advice.explanation(view, bundled=bool(written))
    if written:
        files = counted(len(written), "file")
        terminal.note(f"wrote {files} for the site's support to {bundle}")


@click.command()
@on_option
@click.option("--fix", is_flag=True, help="Repair what can be repaired safely.")
@_offline
@json_option
def doctor(*, on: str, fix: bool, offline: bool, as_json: bool) -> int:
    """Check the project before submitting: code, data, environment, and what it requests.

    The cluster is contacted too, and shown the job; nothing is submitted. Exit code 1 if
    something was found that would make the run fail.
    """
    from rabaska.cli.projects import project_for
    from rabaska.journeys import doctor as journey

    project = project_for(on, {})
    checkup = journey.diagnose(project, on, home(), offline=offline)
    repaired = journey.repair(project, checkup.found) if fix else ()
    left = tuple(finding for finding in checkup.found if not (fix and finding.safe_fix))
    views = finding_views(left)
    profile_only = not_contacted(on, checkup.unasked)
    if as_json:
        terminal.json(
            {
                "findings": checkup.found,
                "mended": repaired,
                "repaired": repaired,
                "unasked": checkup.unasked,
                "view": views,
            }
        )
        return int(any(finding.serious for finding in left))
    render_advice.findings(views, repaired)
    if profile_only:
        terminal.note(profile_only)
    return int(any(finding.serious for finding in left))


@click.command()
@click.option(
    "--on",
    multiple=True,
    metavar="CLUSTER",
    help="A cluster to plan for; repeatable. Default: every cluster in service.",
)
@click.option("--total", metavar="TIME", help="How long the whole training takes: 60h, 20d.")
@click.option(
    "--steps",
    type=click.IntRange(1),
    metavar="N",
    help="Or its steps, at the speed measured before.",
)
@click.option(
    "--epochs", type=click.IntRange(1), metavar="N", help="Or its epochs, in the same way."
)
@click.option(
    "--measure",
    metavar="TIME",
    help="First run it for this long, here and on each cluster given, to measure its speed.",
)
@click.option(
    "--gpus", type=click.IntRange(0), metavar="N", help="GPUs in all; default: as in rabaska.toml."
)
@click.option("--gpu", default="", metavar="KIND", help="Only this kind of GPU: k40, v100, h100.")
@click.option(
    "--write", is_flag=True, help="Write the choice for the cluster given into rabaska.toml."
)
@_offline
@json_option
def plan(*, on: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Choose a queue, a GPU, a number of jobs and a place for the data; show the cost.

    Each cluster given with --on is asked for its state today and when such a job might start.
    Several clusters are compared in a table. Exit code 1 if none of them can run it.
    """
    from rabaska.journeys import plan as journey

    with terminal.steps(quiet=as_json) as reporter:
        plans = journey.plan(Path.cwd(), on, journey.PlanOptions(**options), home(), reporter)
    view = plans_view(plans)
    terminal.json({**plain(plans), "view": view}) if as_json else render_advice.plans(view)
    return int(not any(one.outlook.choice for one in plans.plans))


def _read_all() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace")
