"""The commands of the program `rabaska`, each imported when it is used; and shell completion."""

import importlib

import click
from click.shell_completion import get_completion_class

from rabaska.cli import COMMANDS, overview, terminal
from rabaska.errors import WrongUse
from rabaska.node.version import __version__


class Commands(click.Group):
    """A group that knows its commands by name and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(overview())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            raise click.UsageError(f"no command `{args[0]}`{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rabaska")
def rabaska() -> None:
    """Run a training project from your laptop on any HPC cluster."""


@click.command()
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL: bash, zsh or fish.

    Source it from the shell's start-up file.
    """
    scripts = get_completion_class(shell)
    if scripts is None:
        raise WrongUse(f"no completion for {shell}")
    terminal.data(scripts(rabaska, {}, "rabaska", "_RABASKA_COMPLETE").source())
