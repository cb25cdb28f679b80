"""Commands about the results of a search: fetch, export; and which search is meant."""

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from rabaska.cli import terminal
from rabaska.cli.find_run import project_folder
from rabaska.cli.options import json_option, quiet_option
from rabaska.journeys import search as journey
from rabaska.journeys import search_results
from rabaska.records.home import home
from rabaska.records.search_index import SearchRecord, find, remembered


def _complete_search(
    _ctx: click.Context, _param: click.Parameter, typed: str
) -> list[CompletionItem]:
    names = [record.name for record in remembered(home().searches)]
    return [CompletionItem(name) for name in reversed(names) if name.startswith(typed)]


search_argument = click.argument(
    "name", required=False, default="", metavar="[SEARCH]", shell_complete=_complete_search
)


def chosen_search(name: str) -> SearchRecord:
    return find(home().searches, name, project=project_folder())


@click.command("fetch")
@search_argument
@click.option("--best", type=click.IntRange(0), default=1, metavar="N", help="So many of the best.")
@click.option("--trial", "trials", type=int, multiple=True, metavar="N", help="These; repeatable.")
@click.option(
    "--to", type=click.Path(file_okay=False, path_type=Path), help="The folder to copy them to."
)
@quiet_option
@json_option
def fetch_search(
    name: str, *, best: int, trials: tuple[int, ...], to: Path | None, quiet: bool, as_json: bool
) -> None:
    """Copy the table of all trials, and the results of the best, to this computer."""
    with terminal.steps(quiet=quiet or as_json) as reporter:
        fetched = search_results.fetch(
            chosen_search(name), home(), best=best, trials=trials, to=to, reporter=reporter
        )
    if as_json:
        terminal.json(fetched)
        return
    runs = ", ".join(fetched.runs) or "no trial"
    terminal.note(f"the table and the results of {runs} in")
    terminal.data(str(fetched.folder))


@click.command("export")
@search_argument
@click.option(
    "--as", "form", type=click.Choice(["csv", "json"]), default="csv", help="csv (default) or json."
)
@click.option(
    "--optuna", default="", metavar="STORAGE", help="Add all to a storage, such as sqlite:///x.db."
)
def export_search(name: str, *, form: str, optuna: str) -> None:
    """Print all trials as CSV or JSON, or add them to an Optuna storage."""
    found = journey.status(chosen_search(name), home(), curves=True)
    if optuna:
        count = search_results.to_optuna(found, optuna)
        terminal.note(f"{count} trials were added to study {found.name} in {optuna}")
        return
    text = search_results.as_csv(found) if form == "csv" else search_results.as_json(found)
    terminal.data(text.rstrip("\n"))
