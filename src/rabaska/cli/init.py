"""The command `init`: a rabaska.toml from what a project shows."""

import sys
from pathlib import Path

import click

from rabaska.cli import terminal
from rabaska.cli.options import json_option
from rabaska.errors import WrongUse
from rabaska.journeys import init as init_journey
from rabaska.journeys.init import Proposal


@click.command()
@click.argument(
    "folder", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("-y", "--yes", is_flag=True, help="Ask no questions; take the best guess.")
@click.option("--force", is_flag=True, help="Replace an existing rabaska.toml.")
@click.option("--script", default="", metavar="FILE", help="The script that trains.")
@click.option("--data", default="", metavar="FOLDER", help="The folder that holds the data.")
@json_option
def init(folder: Path, *, yes: bool, force: bool, script: str, data: str, as_json: bool) -> None:
    """Inspect a project and write its rabaska.toml.

    Nothing of the project is run: rabaska reads its scripts and counts its files.
    """
    target = folder.absolute() / "rabaska.toml"
    overwrite = force or (target.exists() and not yes and _may_replace(target))
    if target.exists() and not overwrite:
        raise WrongUse(f"{target} already exists", hint="`rabaska init --force` replaces it")
    given = {"script": script, "data": data}
    proposal = init_journey.init(folder.absolute(), **given)
    if not yes and sys.stdin.isatty():
        proposal = _answered(proposal, folder.absolute(), given)
    init_journey.write(proposal, target, overwrite=overwrite)
    if as_json:
        terminal.json(proposal)
        return
    rows = [(guess.what, guess.value, guess.evidence) for guess in proposal.guesses]
    terminal.table(rows, ("guessed", "", "from"))
    for warning in proposal.warnings:
        terminal.note(f"note: {warning}")
    for line in proposal.advice:
        terminal.note(f"  {line}")
    terminal.note(f"wrote {target}; check it, then `rabaska run`")


def _answered(proposal: Proposal, folder: Path, given: dict[str, str]) -> Proposal:
    """The proposal after a person chose where there was more than one answer."""
    asked = [each for each in init_journey.questions(proposal) if not given[each.about]]
    answers = {
        question.about: click.prompt(
            question.text, type=click.Choice(question.choices), default=question.choices[0]
        )
        for question in asked
    }
    return init_journey.init(folder, **{**given, **answers}) if answers else proposal


def _may_replace(target: Path) -> bool:
    if not sys.stdin.isatty():
        return False
    return click.confirm(f"{target} already exists; replace it?", default=False)
