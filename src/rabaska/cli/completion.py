"""The completion scripts of bash, zsh and fish."""

import click
from click.shell_completion import get_completion_class

from rabaska.cli import show
from rabaska.errors import WrongUse


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of SHELL; source it from the shell's start-up file."""
    from rabaska.cli.commands import rabaska

    scripts = get_completion_class(shell)
    if scripts is None:
        raise WrongUse(f"there is no completion for {shell}")
    show.data(scripts(rabaska, {}, "rabaska", "_RABASKA_COMPLETE").source())
