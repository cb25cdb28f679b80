"""Commands about clusters: list, show, add, check."""

import click

from rabaska.cli import portrait
from rabaska.cli import show as showing
from rabaska.cli.plain import plain
from rabaska.cli.words import json_option
from rabaska.records.home import home
from rabaska.settings.profile_files import names
from rabaska.settings.profiles import load_cluster

_account = click.option("--account", default="", help="The account that pays for the probe's job.")


@click.group(invoke_without_command=True)
@click.pass_context
def clusters(ctx: click.Context) -> None:
    """List the clusters rabaska knows, or show, add or check one."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_clusters)


@clusters.command("list")
@json_option
def list_clusters(*, as_json: bool = False) -> None:
    """List every cluster that `--on` accepts."""
    known = [load_cluster(name, user_profiles=home().profiles) for name in names(home().profiles)]
    showing.json(known) if as_json else showing.clusters_table(known)


@clusters.command("show")
@click.argument("name")
@json_option
def show_cluster(name: str, *, as_json: bool) -> None:
    """Show one cluster's profile, and what was found when the cluster was looked at."""
    from rabaska.journeys.station import seen

    cluster, known = load_cluster(name, user_profiles=home().profiles), seen(name, home())
    if as_json:
        showing.json({**plain(cluster), "seen": known})
    else:
        portrait.cluster(cluster, known)


@clusters.command("add")
@click.argument("name")
@click.option("--host", required=True, help="user@login.site.org, or a Host of ~/.ssh/config.")
@click.option("--ssh-option", "options", multiple=True, help="An option for ssh; may be repeated.")
@click.option("--probe", is_flag=True, help="Try the internet from a compute node, in a tiny job.")
@_account
@click.option("--force", is_flag=True, help="Write the profile anew where there is one.")
@json_option
def add_cluster(
    name: str, *, host: str, options: tuple[str, ...], probe: bool, account: str, force: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Look at a cluster over one connection, and write a profile you can read and edit."""
    from rabaska.journeys.explore import add

    added = add(name, host, home(), options=options, account=account, probe=probe, force=force)
    showing.json(added) if as_json else showing.site(added)


@clusters.command("check")
@click.argument("name")
@click.option("--probe", is_flag=True, help="Try the internet from a compute node, in a tiny job.")
@_account
@json_option
def check_cluster(name: str, *, probe: bool, account: str, as_json: bool) -> int:
    """Hold a profile against its cluster, line by line; exit code 1 when something differs."""
    from rabaska.journeys.explore import check

    lines = check(name, home(), probe=probe, account=account)
    showing.json(lines) if as_json else showing.comparison(lines)
    return int(any(line.verdict == "differs" for line in lines))
