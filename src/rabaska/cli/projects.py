"""Commands that carry a project: pack, run."""

from dataclasses import replace
from pathlib import Path

import click

from rabaska.cli import terminal
from rabaska.cli.find_run import project_folder
from rabaska.cli.options import (
    check_options,
    jobs_option,
    json_option,
    label_options,
    on_option,
    quiet_option,
    request_options,
)
from rabaska.cli.render_status import run_json
from rabaska.domain.projects import Dataset, Project
from rabaska.domain.run_changes import TypedChanges, as_settings
from rabaska.domain.runs import Checks, Draw, Labels
from rabaska.errors import DatasetError, WrongUse
from rabaska.journeys import pack as pack_journey
from rabaska.journeys import run as run_journey
from rabaska.records.home import attempt, home
from rabaska.records.run_index import find
from rabaska.settings.project_file import FILE, check_command, check_data, is_in_project, load
from rabaska.settings.resolution import name_for


@click.command()
@click.argument("what", nargs=-1, metavar="[DATASET | FOLDER...]")
@click.option("--name", metavar="NAME", help="The name of a dataset made of the folders given.")
@click.option(
    "--samples", is_flag=True, help="Files with the same stem form one sample, as in WebDataset."
)
@quiet_option
@json_option
def pack(
    what: tuple[str, ...], *, name: str | None, samples: bool, quiet: bool, as_json: bool
) -> None:
    """Pack the project's datasets that changed, or only those given.

    Folders, archives or large files can be given instead: together they become one dataset. This
    needs no project.
    """
    chosen = _datasets(what, name)
    with terminal.steps(quiet=quiet or as_json) as reporter:
        packs = [
            pack_journey.pack_dataset(
                replace(dataset, samples=samples or dataset.samples), home(), reporter
            )
            for dataset in chosen
        ]
    if as_json:
        terminal.json(packs)


def _datasets(what: tuple[str, ...], name: str | None) -> list[Dataset]:
    """The project's datasets of these names, or one dataset made of these folders."""
    paths = [Path(word).absolute() for word in what]
    exist = bool(paths) and all(path.exists() for path in paths)
    if exist and (name or not Path(FILE).exists()):
        return [_made_of(paths, name)]
    _refuse_missing(what, name)
    project = load(Path.cwd())
    check_data(project)
    names = [dataset.name for dataset in project.datasets]
    if set(what) <= set(names):
        chosen = [dataset for dataset in project.datasets if not what or dataset.name in what]
        _refuse_elsewhere(chosen, what)
        return [dataset for dataset in chosen if dataset.paths]
    if exist:
        return [_made_of(paths, name)]
    unknown = next(word for word in what if word not in names)
    raise WrongUse(
        f"there is no dataset or folder `{unknown}`",
        why=f"the datasets in rabaska.toml are: {', '.join(names) or 'none'}",
    )


def _refuse_elsewhere(chosen: list[Dataset], what: tuple[str, ...]) -> None:
    for dataset in chosen:
        if dataset.name in what and not dataset.paths:
            raise WrongUse(
                f"dataset `{dataset.name}` is not a folder on this computer",
                why=f"rabaska.toml says where it is: {dataset.source}",
                hint=f"`rabaska data pack {dataset.name} --on CLUSTER` packs it there",
            )


def _refuse_missing(what: tuple[str, ...], name: str | None) -> None:
    """Refuse a missing folder, where the word cannot be the name of a dataset."""
    for word in what:
        meant = name or "/" in word or not is_in_project(Path.cwd())
        if meant and not Path(word).exists():
            raise DatasetError(
                f"there is no folder or file {Path(word).absolute()}",
                why="a broken symbolic link" if Path(word).is_symlink() else "",
                hint="check its path",
            )


def _made_of(paths: list[Path], name: str | None) -> Dataset:
    stem = paths[0].with_name(paths[0].name.partition(".")[0] or paths[0].name)
    return Dataset(name or name_for(stem), paths[0], beside=tuple(paths[1:]))


@click.command()
@on_option
@click.option("--dry-run", is_flag=True, help="Print the plan and the job script; change nothing.")
@check_options
@click.option(
    "--wait", is_flag=True, help="Wait until the run ends; exit with the program's exit code."
)
@request_options
@jobs_option("How many jobs to submit.")
@click.option(
    "--at-most",
    type=click.IntRange(1),
    metavar="N",
    help="How many jobs the run may have in all, if it needs more.",
)
@click.option(
    "--native",
    multiple=True,
    metavar="OPTION",
    help="An option for the scheduler as it is, such as --native=--exclusive; repeatable.",
)
@click.option(
    "--each",
    multiple=True,
    metavar="OPTION=VALUES",
    help="Run once for each value: --each lr=0.1,0.01 --each seed=1..5; repeatable.",
)
@click.option("--trial", type=click.IntRange(1), metavar="N", help="With the values of a trial.")
@click.option("--of", default="", metavar="SEARCH", help="The search of --trial.")
@label_options
@quiet_option
@json_option
@click.argument("extra", nargs=-1, metavar="[-- ARGS...]", type=click.UNPROCESSED)
@click.pass_obj
def run(
    draw: Draw | None,
    /,
    *,
    on: str,
    dry_run: bool,
    wait: bool,
    quiet: bool,
    as_json: bool,
    extra: tuple[str, ...],
    native: tuple[str, ...],
    checks: Checks,
    labels: Labels,
    requests: TypedChanges,
    each: tuple[str, ...],
    trial: int | None,
    of: str,
    **chain: int | None,
) -> int:
    """Send the project to a cluster and start it; words after -- go to the program.

    Packs the data that changed, takes a snapshot of the code, submits the jobs, prints the run's
    name and returns at once.
    """
    if each:
        from rabaska.cli.search import run_each

        run_each(
            project_for(on, requests, extra, native=native, **chain), on, each,
            dry_run=dry_run, wait=wait, quiet=quiet, as_json=as_json, checks=checks, draw=draw,
        )  # fmt: skip
        return 0

    def wanted() -> Project:
        words = extra if trial is None else ()
        project = project_for(on, requests, words, native=native, **chain)
        if trial is None:
            return project
        from rabaska.cli.search import with_trial

        changed = with_trial(project, trial, of, write=not dry_run)
        return replace(changed, command=(*changed.command, *extra))

    if dry_run:
        project = wanted()
        with terminal.steps(quiet=quiet) as reporter:
            planned = run_journey.preview(project, on, home(), reporter, checks=checks)
        terminal.json(planned) if as_json else terminal.planned_run(planned)
        return 0
    from rabaska.cli.tell import wait_for

    tried = attempt(home(), project_folder())
    with tried, terminal.steps(quiet=quiet or as_json) as reporter:
        submitted = run_journey.run(
            wanted(),
            on,
            home(),
            reporter,
            checks=checks,
            draw=draw,
            labels=labels,
        )
    if not wait:
        terminal.json(submitted) if as_json else terminal.data(submitted.run)
        return 0
    ended = wait_for(find(home().runs, submitted.run), shown=not (as_json or quiet))
    terminal.json(run_json(ended)) if as_json else terminal.run_status(ended)
    return ended.verdict


def project_for(
    on: str,
    requests: TypedChanges,
    extra: tuple[str, ...] = (),
    *,
    native: tuple[str, ...] = (),
    **chain: int | None,
) -> Project:
    """The project as in rabaska.toml, changed by the options of the command line."""
    of_chain = {f"chain.{key}": value for key, value in chain.items()}
    project = load(Path.cwd(), cluster=on, overrides={**as_settings(**requests), **of_chain})
    words, options = (*project.command, *extra), (*project.native, *native)
    project = replace(project, command=words, native=options)
    check_command(project)
    return project
