"""Commands that advise: doctor, explain."""

import sys
from pathlib import Path

import click

from rabaska.cli import counsel, show
from rabaska.cli.chosen import chosen_run
from rabaska.cli.words import json_option, on_option
from rabaska.records.home import home


@click.command()
@click.argument("what", nargs=-1, metavar="[RUN|TEXT]")
@click.option(
    "--bundle", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
    help="Write what the site's support would ask for into this folder.",
)  # fmt: skip
@json_option
def explain(what: tuple[str, ...], *, bundle: Path | None, as_json: bool) -> None:
    """Say what a message means and what to do; without one, why the newest run stopped.

    `-` reads the message from standard input.
    """
    from rabaska.journeys import explain as journey

    words = " ".join(what)
    record = chosen_run("") if not what else journey.run_meant(words, home())
    if record:
        told = journey.explain_run(record, home())
    else:
        told = journey.explain_text(_read_all() if words == "-" else words)
    written = journey.support_bundle(told, bundle, home(), record) if bundle else ()
    show.json({"explanation": told, "bundle": written}) if as_json else counsel.explanation(told)
    if written and not as_json:
        show.note(f"wrote {len(written)} files for the site's support in {bundle}")


@click.command()
@on_option
@click.option("--fix", is_flag=True, help="Mend what can be mended without harm.")
@json_option
def doctor(*, on: str, fix: bool, as_json: bool) -> int:
    """Look for what would go wrong: code, data, environment, and what is asked of the cluster.

    Exit code 1 when something was found that would make the run fail.
    """
    from rabaska.cli.projects import project_for
    from rabaska.journeys import doctor as journey

    project = project_for(on, {})
    found = journey.diagnose(project, on, home())
    done = journey.mend(project, found) if fix else ()
    left = tuple(each for each in found if not (fix and each.safe_fix))
    if as_json:
        show.json({"findings": found, "mended": done})
    else:
        counsel.findings(left, done)
    return int(any(each.serious for each in left))


def _read_all() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace")
