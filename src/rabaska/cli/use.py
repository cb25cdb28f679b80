"""The command that sets the project's cluster: use."""

from pathlib import Path

import click

from rabaska.cli import terminal
from rabaska.cli.options import complete_cluster, json_option
from rabaska.records.home import home


@click.command()
@click.argument("name", required=False, default="", shell_complete=complete_cluster)
@json_option
def use(name: str, *, as_json: bool) -> None:
    """Set the project's default cluster; without NAME, print it.

    It is the key `on` of rabaska.toml. `--on` still chooses another one for one command.
    """
    from rabaska.journeys.use import use as journey

    chosen = journey(Path.cwd(), home(), name)
    if as_json:
        terminal.json({"cluster": chosen})
    elif name:
        terminal.note(f"commands in this project now use {chosen}; `--on` chooses another")
    else:
        terminal.data(chosen)
