"""Words in, words out: the command line. Each family of commands is imported when it is used."""

import importlib
import sys
from typing import Any

import click

from rabaska.node.version import __version__

# name: (module, what it does). The sentences stand here so that `--help` imports nothing.
COMMANDS = {
    "init": ("rabaska.cli.init", "Look at a project and write its rabaska.toml."),
    "pack": ("rabaska.cli.projects", "Pack the datasets that changed."),
    "run": ("rabaska.cli.projects", "Carry the project to a cluster and start it."),
    "status": ("rabaska.cli.runs", "Show how a run stands, link by link."),
    "logs": ("rabaska.cli.runs", "Print what the program printed."),
    "wait": ("rabaska.cli.runs", "Follow a run to its end."),
    "cancel": ("rabaska.cli.runs", "Stop a run and keep what it saved."),
    "resume": ("rabaska.cli.runs", "Go on with a run that stopped."),
    "fetch": ("rabaska.cli.runs", "Bring results home."),
    "show": ("rabaska.cli.runs", "Print a run's plan and its job script."),
    "forget": ("rabaska.cli.runs", "Drop a run from the list; nothing is deleted."),
    "clusters": ("rabaska.cli.clusters", "List clusters, or show one."),
    "completion": ("rabaska.cli.completion", "Print the completion script of a shell."),
}


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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            raise click.UsageError(f"there is no command `{args[0]}`{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rabaska")
def rabaska() -> None:
    """Carry a training project from a laptop to any HPC cluster and back."""


def main(argv: list[str] | None = None) -> None:
    """The program `rabaska`; its exit codes are those of `rabaska.errors`."""
    sys.exit(_exit_code(argv))


def _exit_code(argv: list[str] | None) -> int:
    from rabaska.errors import RabaskaError

    try:
        outcome: Any = rabaska.main(argv, prog_name="rabaska", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.Abort:
        return _stopped()
    except KeyboardInterrupt:
        return _stopped()
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
    except RabaskaError as problem:
        from rabaska.cli import show

        show.error(problem)
        return problem.exit_code
    except BrokenPipeError:
        # The reader of our output left (`rabaska logs | head`): that is no mistake.
        sys.stderr.close()
        return 0


def _stopped() -> int:
    from rabaska.cli import show

    show.note("stopped; what was submitted goes on without this terminal")
    return 130
