"""Commands about a search: init, run, status, table, best, stop, more, fetch, export."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import click

from rabaska.cli import terminal
from rabaska.cli.options import (
    check_options,
    json_option,
    on_option,
    quiet_option,
    request_options,
)
from rabaska.cli.projects import project_for
from rabaska.cli.search_results import (
    chosen_search,
    export_search,
    fetch_search,
    search_argument,
)
from rabaska.cli.text import columns
from rabaska.domain.projects import Project
from rabaska.domain.run_changes import TypedChanges
from rabaska.domain.runs import Checks, Draw
from rabaska.domain.search import Search, SearchStatus
from rabaska.domain.trial_values import arguments_of, each_of, file_option_of, trial_numbered
from rabaska.journeys import search as journey
from rabaska.journeys import search_results
from rabaska.records.home import home
from rabaska.settings.project_file import load
from rabaska.views import search as views


@click.group()
def search() -> None:
    """Try many values of the program's options, and compare the results.

    What is tried stands under [search] in rabaska.toml.
    """


search.add_command(fetch_search)
search.add_command(export_search)


@search.command("init")
@click.option("-y", "--yes", is_flag=True, help="Write it without asking.")
@click.option("--force", is_flag=True, help="Replace the [search] that is there.")
@json_option
def init(*, yes: bool, force: bool, as_json: bool) -> None:
    """Propose a [search] for rabaska.toml from the options of the program.

    Nothing of the project is run: its source is read.
    """
    from rabaska.journeys import search_init

    proposal = search_init.propose(load(Path.cwd()))
    if as_json:
        terminal.json(proposal)
    else:
        rows = [(one.name, one.text, f"{one.why}; {one.place}") for one in proposal.parameters]
        terminal.table([("metric", proposal.metric, ""), *rows], ("guessed", "", "why"))
        for note in proposal.notes:
            terminal.note(f"note: {note}")
    asked = not yes and not as_json and sys.stdin.isatty()
    if asked and not click.confirm(f"write it to {proposal.file}?", default=True):
        return
    if yes or asked:
        search_init.write(proposal, force=force)
        terminal.note(f"wrote [search] to {proposal.file}; check it, then `rabaska search run`")
    elif not as_json:
        terminal.data(f"\n{proposal.text}")
        terminal.note("`rabaska search init --yes` writes this to rabaska.toml")


@search.command("run")
@on_option
@click.option("--name", default="", metavar="NAME", help="The name of the search.")
@click.option("--trials", type=click.IntRange(1), metavar="N", help="How many trials.")
@click.option("--at-once", type=click.IntRange(1), metavar="N", help="How many at the same time.")
@click.option("--dry-run", is_flag=True, help="Print the plan and the job script; change nothing.")
@click.option("--wait", is_flag=True, help="Wait until the search ends, and print its table.")
@check_options
@request_options
@quiet_option
@json_option
@click.argument("extra", nargs=-1, metavar="[-- ARGS...]", type=click.UNPROCESSED)
@click.pass_obj
def run(
    draw: Draw | None,
    /,
    *,
    on: str,
    name: str,
    trials: int | None,
    at_once: int | None,
    dry_run: bool,
    wait: bool,
    quiet: bool,
    as_json: bool,
    extra: tuple[str, ...],
    checks: Checks,
    requests: TypedChanges,
) -> None:
    """Send the project to a cluster, and submit workers that run its trials.

    Each worker takes a trial, runs it, and takes the next. Words after -- go to the program in all
    trials.
    """
    project = _project(on, requests, extra, trials, at_once)
    _started(
        project, on, name, checks=checks, draw=draw,
        dry_run=dry_run, wait=wait, quiet=quiet, as_json=as_json,
    )  # fmt: skip


def _started(
    project: Project,
    on: str,
    name: str,
    *,
    checks: Checks,
    draw: Draw | None,
    dry_run: bool,
    wait: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    if dry_run:
        with terminal.steps(quiet=quiet) as reporter:
            planned = journey.preview(project, on, home(), reporter, name=name)
        terminal.json(planned) if as_json else _print(views.plan_lines(planned))
        return
    with terminal.steps(quiet=quiet or as_json) as reporter:
        started = journey.run(project, on, home(), reporter, name=name, checks=checks, draw=draw)
    if not wait:
        terminal.json(started) if as_json else terminal.data(started.search)
        return
    ended = journey.wait(chosen_search(started.search), home())
    terminal.json(views.search_json(ended)) if as_json else _table(ended)


def run_each(
    project: Project,
    on: str,
    each: tuple[str, ...],
    *,
    checks: Checks,
    draw: Draw | None,
    **shown: bool,
) -> None:
    """`rabaska run --each`: all combinations, compared by nothing but side by side."""
    known = project.search or Search()
    swept = Search(known.metric, known.goal, at_once=known.at_once, method="grid")
    project = replace(project, search=replace(swept, space=each_of(each)))
    _started(project, on, "", checks=checks, draw=draw, **shown)


def with_trial(project: Project, number: int, of: str, *, write: bool) -> Project:
    """The project with the values of a trial of a search."""
    found = journey.status(chosen_search(of), home())
    trial = trial_numbered(found, number)
    if write and (option := file_option_of(found, trial)):
        terminal.note(f"the values of trial {number} are in a file of their own, after {option}")
    return search_results.project_of_trial(project, found, trial, write=write)


def _project(
    on: str,
    requests: TypedChanges,
    extra: tuple[str, ...],
    trials: int | None,
    at_once: int | None,
) -> Project:
    project = project_for(on, requests, extra)
    if project.search is None:
        return project
    changed = replace(
        project.search,
        trials=trials or project.search.trials,
        at_once=at_once or project.search.at_once,
    )
    return replace(project, search=changed)


@search.command("status")
@search_argument
@json_option
def status(name: str, *, as_json: bool) -> None:
    """Show how far a search is, and its best trial so far."""
    found = journey.status(chosen_search(name), home())
    terminal.json(views.search_json(found)) if as_json else _print(views.status_lines(found))


@search.command("table")
@search_argument
@click.option("--sort", default="", metavar="KEY", help="Sort by a parameter, or by `number`.")
@click.option("-n", "--first", type=click.IntRange(1), metavar="N", help="Only the first N.")
@json_option
def table(name: str, *, sort: str, first: int | None, as_json: bool) -> None:
    """List the trials, the best first."""
    found = journey.status(chosen_search(name), home())
    if as_json:
        terminal.json(views.search_json(found)["trials"])
        return
    _table(found, sort=sort, first=first)


@search.command("best")
@search_argument
@json_option
def best(name: str, *, as_json: bool) -> None:
    """Show the best trial, and the command that runs it by itself."""
    found, trial = journey.best(chosen_search(name), home())
    if as_json:
        terminal.json(views.trial_json(trial))
        return
    words = arguments_of(found, trial)
    _print(views.best_lines(found, trial, shlex.join(words)))


@search.command("stop")
@search_argument
@json_option
def stop(name: str, *, as_json: bool) -> None:
    """Begin no more trials; those that run may save, and can be continued."""
    found = journey.stop(chosen_search(name), home())
    if as_json:
        terminal.json(views.search_json(found))
        return
    terminal.note(f"search {found.name} is asked to stop; `rabaska search more 0` continues it")


@search.command("more")
@click.argument("count", type=click.IntRange(0), metavar="N")
@search_argument
@quiet_option
@json_option
def more(count: int, name: str, *, quiet: bool, as_json: bool) -> None:
    """Add N trials to a search, also long after it ended; 0 continues one that was stopped."""
    with terminal.steps(quiet=quiet or as_json) as reporter:
        started = journey.more(chosen_search(name), count, home(), reporter)
    terminal.json(started) if as_json else terminal.data(started.search)


def _print(lines: list[str]) -> None:
    for line in lines:
        terminal.data(line)


def _table(found: SearchStatus, *, sort: str = "", first: int | None = None) -> None:
    shown = views.table(found, sort=sort, first=first)
    for line in columns(shown.rows, shown.headings, right=shown.right):
        terminal.data(line)
    for remark in views.remarks(found):
        terminal.note(str(remark))
