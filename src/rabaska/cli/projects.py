"""Commands that carry a project: init, pack, run."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rabaska.cli import terminal
from rabaska.cli.options import jobs_option, json_option, on_option, quiet_option
from rabaska.domain.projects import Dataset, Project
from rabaska.domain.runs import Draw
from rabaska.errors import DatasetError, WrongUse
from rabaska.journeys import init as init_journey
from rabaska.journeys import pack as pack_journey
from rabaska.journeys import run as run_journey
from rabaska.journeys import wait as wait_journey
from rabaska.journeys.init import Proposal
from rabaska.records.home import home
from rabaska.records.run_index import find
from rabaska.settings.project_file import FILE, check_command, check_data, is_in_project, load
from rabaska.settings.resolution import name_for

_KEYS = {
    "walltime": "resources.walltime",
    "gpus": "resources.gpus",
    "jobs": "chain.jobs",
    "at_most": "chain.at_most",
}


@click.command()
@click.argument("what", nargs=-1, metavar="[DATASET | FOLDER...]")
@click.option("--name", metavar="NAME", help="What to call a dataset made of folders.")
@click.option("--samples", is_flag=True, help="Count samples: files of one stem, for WebDataset.")
@quiet_option
@json_option
def pack(
    what: tuple[str, ...], *, name: str | None, samples: bool, quiet: bool, as_json: bool
) -> None:
    """Pack every dataset of the project, or those that are named, if they changed.

    Folders, archives or large files, given instead, become one dataset side by side; that
    needs no project.
    """
    chosen = _datasets(what, name)
    with terminal.steps(quiet=quiet or as_json) as told:
        packs = [
            pack_journey.pack_dataset(replace(each, samples=samples or each.samples), home(), told)
            for each in chosen
        ]
    if as_json:
        terminal.json(packs)


def _datasets(what: tuple[str, ...], name: str | None) -> list[Dataset]:
    """The datasets of the project that are meant, or one made of the folders that are."""
    paths = [Path(word).absolute() for word in what]
    exist = bool(paths) and all(path.exists() for path in paths)
    if exist and (name or not Path(FILE).exists()):
        return [_made_of(paths, name)]
    _refuse_missing(what, name)
    project = load(Path.cwd())
    check_data(project)
    known = [each.name for each in project.datasets]
    if set(what) <= set(known):
        return [each for each in project.datasets if not what or each.name in what]
    if exist:
        return [_made_of(paths, name)]
    unknown = next(word for word in what if word not in known)
    raise WrongUse(
        f"no dataset is called `{unknown}`",
        why=f"rabaska.toml names: {', '.join(known) or 'none'}; and no folder is called so",
    )


def _refuse_missing(what: tuple[str, ...], name: str | None) -> None:
    """Refuse a folder that is not there, where no dataset of a project can be meant."""
    for word in what:
        meant = name or "/" in word or not is_in_project(Path.cwd())
        if meant and not Path(word).exists():
            raise DatasetError(
                f"there is no folder or file {Path(word).absolute()}",
                why="a link that leads nowhere" if Path(word).is_symlink() else "",
                hint="check its path",
            )


def _made_of(paths: list[Path], name: str | None) -> Dataset:
    stem = paths[0].with_name(paths[0].name.partition(".")[0] or paths[0].name)
    return Dataset(name or name_for(stem), paths[0], beside=tuple(paths[1:]))


@click.command()
@on_option
@click.option("--dry-run", is_flag=True, help="Print the plan and the script; touch nothing.")
@click.option("--no-doctor", is_flag=True, help="Do not look for what would go wrong first.")
@click.option("--wait", is_flag=True, help="Follow the run; exit with the program's verdict.")
@click.option("--walltime", metavar="TIME", help="Time limit of one job: 90s, 3h, 1d.")
@jobs_option("How many jobs are queued at once.")
@click.option(
    "--at-most",
    type=click.IntRange(1),
    help="How many the run may grow to, when those are too few.",
)
@click.option("--gpus", type=click.IntRange(0), help="GPUs per node.")
@click.option(
    "--native",
    multiple=True,
    metavar="OPTION",
    help="An option for the scheduler in its own words, such as --native=--exclusive; repeatable.",
)
@quiet_option
@json_option
@click.argument("extra", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def run(
    draw: Draw | None,
    /,
    *,
    on: str,
    dry_run: bool,
    no_doctor: bool,
    wait: bool,
    quiet: bool,
    as_json: bool,
    extra: tuple[str, ...],
    native: tuple[str, ...],
    **asked: Any,
) -> int:
    """Carry the project to a cluster and start it; words after -- go to the program.

    Packs what changed, takes a snapshot of the code, submits the chain and returns at once
    with the run's name.
    """
    project = project_for(on, asked, extra)
    project = replace(project, native=(*project.native, *native))
    if dry_run:
        with terminal.steps(quiet=quiet) as told:
            voyage = run_journey.preview(project, on, home(), told, advise=not no_doctor)
        terminal.json(voyage) if as_json else terminal.voyage(voyage)
        return 0
    with terminal.steps(quiet=quiet or as_json) as told:
        submitted = run_journey.run(project, on, home(), told, advise=not no_doctor, draw=draw)
    if not wait:
        terminal.json(submitted) if as_json else terminal.data(submitted.run)
        return 0
    following = terminal.Following()
    try:
        ended = wait_journey.wait(
            find(home().runs, submitted.run), home(), None if as_json or quiet else following
        )
    finally:
        following.stop()
    terminal.json(ended) if as_json else terminal.run_status(ended)
    return ended.verdict


def project_for(on: str, asked: dict[str, Any], extra: tuple[str, ...] = ()) -> Project:
    """rabaska.toml, with what the command line says for this run on top."""
    overrides = {_KEYS[word]: value for word, value in asked.items()}
    project = load(Path.cwd(), cluster=on, overrides=overrides)
    project = replace(project, command=(*project.command, *extra))
    check_command(project)
    return project


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
        terminal.json(proposal)
        return
    terminal.proposal(proposal, target)


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
