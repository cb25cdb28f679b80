"""Commands about clusters: list, show, add, check, edit, remove."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import click

from rabaska.cli import terminal
from rabaska.cli.options import complete_cluster, json_option
from rabaska.cli.render_status import COLOURS
from rabaska.cli.text import Painted, columns, plain
from rabaska.domain.shell_words import option_words
from rabaska.records.home import home
from rabaska.settings.profile_files import names
from rabaska.settings.profiles import load_cluster
from rabaska.views.clusters import (
    CLUSTER_HEADINGS,
    COMPARISON_HEADINGS,
    DATASET_HEADINGS,
    QUEUE_HEADINGS,
    TIER_HEADINGS,
    ComparisonRow,
    ProfileView,
    added_facts,
    cluster_row,
    comparison_rows,
    profile_view,
)

if TYPE_CHECKING:
    from rabaska.errors import SettingsError
    from rabaska.journeys.edit_cluster import Copy

_account = click.option(
    "--account", default="", help="The account to charge for the job of --probe."
)


@click.group(invoke_without_command=True)
@click.pass_context
def clusters(ctx: click.Context) -> None:
    """List the clusters that rabaska knows; show, add, check, edit or remove one."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_clusters)


@clusters.command("list")
@json_option
def list_clusters(*, as_json: bool = False) -> None:
    """List every cluster that `--on` accepts."""
    profiles = home().profiles
    profiled = [load_cluster(name, user_profiles=profiles) for name in names(profiles)]
    if as_json:
        terminal.json(profiled)
    else:
        terminal.table([astuple(cluster_row(cluster)) for cluster in profiled], CLUSTER_HEADINGS)


_name = click.argument("name", shell_complete=complete_cluster)
_probe = click.option(
    "--probe", is_flag=True, help="Test the internet from a compute node, with a very short job."
)


@clusters.command("show")
@_name
@json_option
def show_cluster(name: str, *, as_json: bool) -> None:
    """Show a cluster's profile, and what the last check found."""
    from rabaska.steps.connect import observations_of

    cluster = load_cluster(name, user_profiles=home().profiles)
    observed = observations_of(name, home())
    view = profile_view(cluster, observed)
    if as_json:
        terminal.json({**plain(cluster), "seen": observed, "view": view})
    else:
        _print_profile(view)


def _print_profile(view: ProfileView) -> None:
    terminal.data("\n".join(columns(view.facts, ("", ""))[1:]))
    if view.queues:
        _print_table(view.queues, QUEUE_HEADINGS, right=("nodes", "cores", "memory"))
    if view.storage:
        _print_table(view.storage, TIER_HEADINGS, right=("size", "files"))
    if view.datasets:
        _print_table(view.datasets, DATASET_HEADINGS, right=("size", "files"))
    if view.checked:
        terminal.data("\n" + "\n".join(view.checked))


def _print_table(rows: Iterable[Any], headings: Sequence[str], *, right: Sequence[str]) -> None:
    terminal.data("\n" + "\n".join(columns(map(astuple, rows), headings, right=right)))


@clusters.command("add")
@click.argument("name")
@click.option("--host", required=True, help="user@login.site.org, or a Host of ~/.ssh/config.")
@click.option(
    "--ssh-option",
    "options",
    multiple=True,
    help="An option for ssh, such as `-F FILE` or `-p 2222`; repeatable.",
)
@_probe
@_account
@click.option("--force", is_flag=True, help="Replace an existing profile.")
@json_option
def add_cluster(
    name: str,
    *,
    host: str,
    options: tuple[str, ...],
    probe: bool,
    account: str,
    force: bool,
    as_json: bool,
) -> None:
    """Inspect a cluster over ssh and write its profile.

    The profile is a text file that you can read and edit.
    """
    from rabaska.journeys.clusters import add

    words = tuple(word for option in options for word in option_words(option))
    added = add(name, host, home(), options=words, account=account, probe=probe, force=force)
    if as_json:
        terminal.json(added)
        return
    terminal.table(added_facts(added).items())
    for sentence in added.notes:
        terminal.note(f"note: {sentence}")
    terminal.note(f"wrote {added.file}; check it, then `rabaska run --on {added.cluster.name}`")


@clusters.command("check")
@_name
@_probe
@_account
@json_option
def check_cluster(name: str, *, probe: bool, account: str, as_json: bool) -> int:
    """Compare a cluster's profile with the cluster, key by key.

    Exit code 1 if something differs.
    """
    from rabaska.journeys.clusters import check

    facts = check(name, home(), probe=probe, account=account)
    if as_json:
        terminal.json(facts)
    else:
        rows = [_comparison(row) for row in comparison_rows(facts)]
        colours = terminal.colours_wanted()
        terminal.data("\n".join(columns(rows, COMPARISON_HEADINGS, colours=colours)))
    return int(any(fact.verdict == "differs" for fact in facts))


@clusters.command("edit")
@_name
def edit_cluster(name: str) -> None:
    """Edit a cluster's profile in $VISUAL or $EDITOR.

    A copy is edited. It replaces the profile only if it is valid; else its mistakes are shown, and
    the editor can be opened again. Of a profile that comes with rabaska, you get one of your own.
    """
    from rabaska.errors import SettingsError
    from rabaska.journeys.edit_cluster import Copy

    with Copy(name, home()) as copy:
        while True:
            copy.open_editor()
            if not copy.is_changed:
                terminal.note("nothing was changed")
                return
            try:
                file = copy.accept()
            except SettingsError as problem:
                _offer_again(copy, problem)
            else:
                terminal.note(f"wrote {file}; `rabaska clusters check {name}` compares it")
                return


def _offer_again(copy: "Copy", problem: "SettingsError") -> None:
    """Show the mistake; raise it unless somebody wants the editor again."""
    if sys.stdin.isatty():
        terminal.error(problem)
        if click.confirm("edit it again?", default=True, err=True):
            return
    kept = copy.set_aside()
    problem.hint = f"the profile was not changed; what you wrote is in {kept}"
    raise problem


@clusters.command("remove")
@_name
@click.option("--yes", is_flag=True, help="Remove without asking.")
@click.option("--force", is_flag=True, help="Remove it though runs there are active.")
@json_option
def remove_cluster(name: str, *, yes: bool, force: bool, as_json: bool) -> None:
    """Remove a cluster's profile; nothing on the cluster is deleted."""
    from rabaska.errors import WrongUse
    from rabaska.journeys.clusters import remove

    if not yes:
        if not sys.stdin.isatty():
            raise WrongUse(
                "nothing was removed",
                why="nobody is there to agree",
                hint="`--yes` removes it at once",
            )
        click.confirm(f"remove the profile of {name}?", abort=True, err=True)
    removed = remove(name, home(), force=force)
    if as_json:
        terminal.json(removed)
        return
    more = "; the profile that comes with rabaska is used again" if removed.built_in else ""
    terminal.note(f"removed {removed.file}{more}")
    if removed.forgotten:
        runs = f"dropped from the list, their folders stay there: {', '.join(removed.forgotten)}"
        terminal.note(runs)


def _comparison(row: ComparisonRow) -> tuple[object, ...]:
    return (Painted(row.verdict, COLOURS[row.tone]), row.key, row.profile, row.cluster)
