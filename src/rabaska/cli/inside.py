"""Commands that go where the program runs: shell, exec."""

import sys
from typing import Any

import click

from rabaska.cli import show
from rabaska.cli.chosen import chosen_run
from rabaska.cli.words import found_on_option, on_option, quiet_option
from rabaska.records.home import home


@click.command()
@on_option
@click.option("--walltime", metavar="TIME", help="How long you may stay: 30m, 2h.")
@click.option("--gpus", type=click.IntRange(0), help="GPUs per node.")
@quiet_option
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def shell(*, on: str, quiet: bool, words: tuple[str, ...], **asked: Any) -> int:
    """Open a shell on a compute node, to try things before a run.

    Modules are loaded, the environment is active, data is staged and the code is in place.
    Words after -- are run instead of a shell. What is written to the output folder is kept;
    the allocation ends with the shell.
    """
    from rabaska.cli.projects import project_for
    from rabaska.journeys.shell import shell as open_shell

    project = project_for(on, asked)
    with show.steps(quiet=quiet) as told:
        return open_shell(project, on, home(), told, words=words, terminal=_terminal())


@click.command("exec")
@click.argument("run")
@found_on_option
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def beside(run: str, words: tuple[str, ...], on: str) -> int:
    """Run a command beside a running program: `rabaska exec RUN -- nvidia-smi`.

    It runs on the program's node, in its folder and environment; its exit code is ours.
    """
    from rabaska.journeys.execute import execute

    return execute(chosen_run(run, on), home(), words, terminal=_terminal())


exec = beside  # noqa: A001 - commands are looked up by the word that users type


def _terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
