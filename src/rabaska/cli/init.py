"""The command that meets a project for the first time."""

import sys
from pathlib import Path

import click

from rabaska.cli import show
from rabaska.cli.words import json_option
from rabaska.errors import WrongUse
from rabaska.journeys import init as init_journey
from rabaska.journeys.init import Proposal


@click.command()
@click.argument(
    "folder", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("-y", "--yes", is_flag=True, help="Ask nothing; take the best guess.")
@click.option("--force", is_flag=True, help="Replace a rabaska.toml that is there.")
@json_option
def init(folder: Path, *, yes: bool, force: bool, as_json: bool) -> None:
    """Look at a project and write a rabaska.toml that works.

    Nothing of the project is run: scripts are read, folders are counted.
    """
    target = folder.absolute() / "rabaska.toml"
    overwrite = force or (target.exists() and not yes and _may_replace(target))
    if target.exists() and not overwrite:
        raise WrongUse(f"{target} is there already", hint="`rabaska init --force` replaces it")
    proposal = init_journey.init(folder.absolute())
    if not yes and sys.stdin.isatty():
        proposal = _answered(proposal, folder.absolute())
    init_journey.write(proposal, target, overwrite=overwrite)
    if as_json:
        show.json(proposal)
        return
    show.proposal(proposal, target)


def _answered(proposal: Proposal, folder: Path) -> Proposal:
    """The proposal after a person chose where there was more than one answer."""
    answers = {
        question.about: click.prompt(
            question.text, type=click.Choice(question.choices), default=question.choices[0]
        )
        for question in init_journey.questions(proposal)
    }
    return init_journey.init(folder, **answers) if answers else proposal


def _may_replace(target: Path) -> bool:
    if not sys.stdin.isatty():
        return False
    return click.confirm(f"{target} is there already; replace it?", default=False)
