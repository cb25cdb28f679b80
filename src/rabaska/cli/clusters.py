"""Commands about clusters: list, show."""

import click

from rabaska.cli import show as showing
from rabaska.cli.words import json_option
from rabaska.records.home import home
from rabaska.settings.profile_files import names
from rabaska.settings.profiles import load_cluster


@click.group(invoke_without_command=True)
@click.pass_context
def clusters(ctx: click.Context) -> None:
    """List the clusters rabaska knows, or show one."""
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
    """Show one cluster's profile."""
    cluster = load_cluster(name, user_profiles=home().profiles)
    showing.json(cluster) if as_json else showing.cluster(cluster)
