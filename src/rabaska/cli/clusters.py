"""Commands about clusters: list, show, add, check; and a profile as text."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from rabaska.cli import terminal
from rabaska.cli import terminal as showing
from rabaska.cli.options import json_option
from rabaska.cli.render_advice import TIERS, tier_row
from rabaska.cli.text import columns, plain
from rabaska.domain.amounts import say_duration, say_size
from rabaska.records.home import home
from rabaska.settings.profile_files import names
from rabaska.settings.profiles import load_cluster

if TYPE_CHECKING:
    from rabaska.domain.clusters import Cluster, Partition
    from rabaska.domain.observed import Observations

_QUEUES = ("queue", "limit", "nodes", "cores", "memory", "GPUs", "with one GPU", "")
_RIGHT = ("nodes", "cores", "memory")
_APART = ("partitions", "storage", "tiers", "probe")  # told in a table of their own


def profile_text(told: "Cluster", seen: "Observations | None") -> None:
    names = [each.name for each in fields(told) if each.name not in _APART]
    lines = [(name, line) for name in names for line in _lines(getattr(told, name))]
    terminal.data("\n".join(columns(lines, ("", ""))[1:]))
    if told.partitions:
        terminal.data(
            "\n" + "\n".join(columns(map(_queue, told.partitions), _QUEUES, right=_RIGHT))
        )
    if told.storage:
        rows = map(tier_row, told.storage)
        terminal.data("\n" + "\n".join(columns(rows, TIERS, right=("size", "files"))))
    for line in _verified(told, seen):
        terminal.data(line)


def _lines(value: object) -> list[str]:
    """One line, or one for each sentence; none for what is not known."""
    if isinstance(value, Mapping):
        return [", ".join(f"{name}={each}" for name, each in value.items())] if value else []
    if isinstance(value, tuple):
        sentences = any(" " in each for each in value)
        return list(value) if sentences or not value else [", ".join(value)]
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, timedelta):
        return [say_duration(value)]
    return [str(value)] if value else []


def _queue(each: "Partition") -> tuple[object, ...]:
    bundle = [f"{each.cores_per_gpu} cores"] if each.cores_per_gpu else []
    bundle += [say_size(each.memory_per_gpu)] if each.memory_per_gpu else []
    return (
        f"{each.name}*" if each.default else each.name,
        say_duration(each.walltime) if each.walltime else "",
        each.nodes or "",
        each.cores or "",
        say_size(each.memory) if each.memory else "",
        f"{each.gpus} {each.kind}".strip() if each.gpus else "",
        ", ".join(bundle),
        each.note,
    )


def _verified(told: "Cluster", seen: "Observations | None") -> Iterator[str]:
    """What nobody had verified when the profile was written, and what came of looking."""
    if seen:
        differing = [fact for fact in seen.facts if fact.verdict == "differs"]
        yield f"\nlooked at on {seen.day}: {len(seen.facts)} facts compared"
        for fact in differing:
            says = fact.says or "nothing"
            yield f"  {fact.key}: the profile says {says}, the cluster says: {fact.found}"
    for key in told.probe:
        found = seen.about(key) if seen else ()
        known = {f"{fact.verdict}: {fact.found or fact.says}" for fact in found}
        yield f"unverified: {key} ({'; '.join(sorted(known)) or 'nobody has looked yet'})"


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
    from rabaska.steps.connect import observations_of

    cluster, known = (
        load_cluster(name, user_profiles=home().profiles),
        observations_of(name, home()),
    )
    if as_json:
        showing.json({**plain(cluster), "seen": known})
    else:
        profile_text(cluster, known)


@clusters.command("add")
@click.argument("name")
@click.option("--host", required=True, help="user@login.site.org, or a Host of ~/.ssh/config.")
@click.option("--ssh-option", "options", multiple=True, help="An option for ssh; may be repeated.")
@click.option("--probe", is_flag=True, help="Try the internet from a compute node, in a tiny job.")
@_account
@click.option("--force", is_flag=True, help="Write the profile anew where there is one.")
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
    """Look at a cluster over one connection, and write a profile you can read and edit."""
    from rabaska.journeys.clusters import add

    added = add(name, host, home(), options=options, account=account, probe=probe, force=force)
    showing.json(added) if as_json else showing.site(added)


@clusters.command("check")
@click.argument("name")
@click.option("--probe", is_flag=True, help="Try the internet from a compute node, in a tiny job.")
@_account
@json_option
def check_cluster(name: str, *, probe: bool, account: str, as_json: bool) -> int:
    """Hold a profile against its cluster, line by line; exit code 1 when something differs."""
    from rabaska.journeys.clusters import check

    lines = check(name, home(), probe=probe, account=account)
    showing.json(lines) if as_json else showing.comparison(lines)
    return int(any(line.verdict == "differs" for line in lines))
