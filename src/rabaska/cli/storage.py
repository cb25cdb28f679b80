"""Commands about the store on a cluster: storage, clean."""

import click

from rabaska.cli import render_advice, terminal
from rabaska.cli.options import json_option, on_option
from rabaska.cli.text import plain
from rabaska.records.home import home
from rabaska.views.storage import clean_view, storage_view


@click.command()
@on_option
@json_option
def storage(*, on: str, as_json: bool) -> None:
    """Show a cluster's storage, what rabaska keeps there, and when the site deletes it."""
    from rabaska.journeys.storage import storage as journey

    kept = journey(on, home())
    view = storage_view(kept)
    terminal.json({**plain(kept), "view": view}) if as_json else render_advice.storage(view)


@click.command()
@on_option
@click.option("--yes", is_flag=True, help="Delete; without this, only show what would go.")
@json_option
def clean(*, on: str, yes: bool, as_json: bool) -> None:
    """Show what no run needs any more; with --yes, delete it.

    Runs and their results are kept, and everything that an unfinished run needs. A pack that is
    deleted is sent again when a run needs it.
    """
    from rabaska.journeys import clean as journey

    result = journey.clean(on, home()) if yes else journey.preview(on, home())
    view = clean_view(result, preview=not yes)
    terminal.json({**plain(result), "view": view}) if as_json else render_advice.cleaning(view)
