"""Commands about the store on a cluster: storage, clean."""

import click

from rabaska.cli import render_advice, terminal
from rabaska.cli.options import json_option, on_option
from rabaska.records.home import home


@click.command()
@on_option
@json_option
def storage(*, on: str, as_json: bool) -> None:
    """Show a cluster's storage, what rabaska keeps there, and when the site deletes it."""
    from rabaska.journeys.storage import storage as journey

    told = journey(on, home())
    terminal.json(told) if as_json else render_advice.storage(told)


@click.command()
@on_option
@click.option("--yes", is_flag=True, help="Delete it; without this, only show what would go.")
@json_option
def clean(*, on: str, yes: bool, as_json: bool) -> None:
    """Show what no run needs any more, and delete it with --yes.

    Runs and their results stay, and so does all that an unfinished run needs. Packs can be
    sent again when another run wants them.
    """
    from rabaska.journeys import clean as journey

    told = journey.clean(on, home()) if yes else journey.preview(on, home())
    terminal.json(told) if as_json else render_advice.cleaning(told, preview=not yes)
