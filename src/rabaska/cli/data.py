"""Commands about data: list packs, check them, extract files, advise."""

import os
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from rabaska.cli import data_on_cluster, terminal
from rabaska.cli.options import Renamed, complete_cluster, json_option, quiet_option
from rabaska.cli.text import columns
from rabaska.domain.amounts import say_seconds, say_size
from rabaska.errors import DamagedPack
from rabaska.journeys import data as journey
from rabaska.journeys import data_advice
from rabaska.journeys.verify_there import repair_there, verify_there
from rabaska.node.data.pack_format import FOLDER, LINK
from rabaska.packing.pack_advice import Advice
from rabaska.records.home import home
from rabaska.settings.project_file import is_in_project
from rabaska.steps.progress import Reporter
from rabaska.views.words import counted

_NO_PACK = "no packs yet; `rabaska pack` packs the project's datasets"


@click.group()
def data() -> None:
    """List, check and extract packs; measure whether packing is worth it."""


data.add_command(data_on_cluster.pack_data)
data.add_command(data_on_cluster.globus_data)


def _complete_pack(
    _ctx: click.Context, _param: click.Parameter, typed: str
) -> list[CompletionItem]:
    names = {pack.name for pack in journey.kept(Path.cwd(), home())}
    return [CompletionItem(name) for name in sorted(names) if name.startswith(typed)]


@data.command("verify")
@click.argument("names", nargs=-1, metavar="[PACK]...", shell_complete=_complete_pack)
@click.option("--on", default="", metavar="CLUSTER", help="Check the packs on this cluster.")
@click.option(
    "--repair",
    cls=Renamed,
    old="--mend",
    is_flag=True,
    help="Pack damaged packs again; with --on, send them again, or pack them again there.",
)
@quiet_option
@json_option
def verify(names: tuple[str, ...], *, on: str, repair: bool, quiet: bool, as_json: bool) -> None:
    """Compare every byte of a pack with its manifest.

    By default all packs of the project are checked. Exit code 5 if a pack is damaged.
    """
    with terminal.steps(quiet=quiet or as_json) as reporter:
        verdicts = _verdicts(names, on, reporter)
        for verdict in verdicts:
            if not verdict.problems:
                reporter.step(f"{verdict.pack} is complete")
        damaged = [verdict for verdict in verdicts if verdict.problems]
        if repair and damaged:
            _repair([verdict.folder for verdict in damaged], on, reporter)
    if as_json:
        terminal.json(verdicts)
    elif not verdicts:
        terminal.note(_NO_PACK)
    if damaged and not repair:
        raise _damage(damaged, on)


def _verdicts(names: tuple[str, ...], on: str, reporter: Reporter) -> list[journey.PackVerdict]:
    if on:
        return verify_there(names, Path.cwd(), on, home())
    packs = [journey.pack_called(name, home()) for name in names]
    return journey.verify(packs or journey.folders_of(Path.cwd(), home()), reporter)


def _repair(packs: list[Path], on: str, reporter: Reporter) -> None:
    if on not in ("", "here"):
        packs = repair_there(packs, Path.cwd(), on, home(), reporter)
    else:
        journey.repair(packs, Path.cwd(), home(), reporter)
    if packs:
        names = ", ".join(pack.name for pack in packs)
        reporter.step(f"repaired{f' on {on}' if on else ''}: {names}")


def _damage(damaged: list[journey.PackVerdict], on: str) -> DamagedPack:
    first = damaged[0]
    with_on = f"`rabaska data verify {first.pack} --on {on} --repair` repairs it"
    return DamagedPack(
        " and ".join(f"{verdict.pack} is damaged" for verdict in damaged),
        why="; ".join(problem for verdict in damaged for problem in verdict.problems),
        hint=with_on if on else journey.made_again(first.pack),
    )


@data.command("ls")
@click.argument("pack", default="", shell_complete=_complete_pack)
@click.argument("below", default="", metavar="[FOLDER]")
@click.option(
    "--on",
    default="",
    metavar="CLUSTER",
    shell_complete=complete_cluster,
    help="List what this cluster has: packs, downloads, and datasets of the site.",
)
@json_option
def ls(pack: str, below: str, *, on: str, as_json: bool) -> None:
    """List the project's packs, or the files of a pack."""
    if on:
        data_on_cluster.list_there(on, pack, as_json=as_json)
        return
    if not pack:
        _list_packs(as_json=as_json)
        return
    entries = journey.entries(journey.pack_called(pack, home()), below)
    if as_json:
        files = [{"name": os.fsdecode(entry.name), "size": entry.size} for entry in entries]
        terminal.json(files)
        return
    for entry in entries:
        name = os.fsdecode(entry.name) + ("/" if entry.kind == FOLDER else "")
        target = f" -> {os.fsdecode(entry.target)}" if entry.kind == LINK else ""
        terminal.data(f"{entry.size:12d}  {name}{target}")


def _list_packs(*, as_json: bool) -> None:
    packs = journey.kept(Path.cwd(), home())
    if as_json:
        terminal.json(packs)
        return
    if not packs:
        terminal.note(_NO_PACK)
        return
    rows = [
        (pack.name, f"{pack.files:,}", say_size(pack.bytes), pack.digest[:12], pack.folder)
        for pack in packs
    ]
    headings = ("name", "files", "size", "digest", "folder")
    for line in columns(rows, headings, right=("files", "size")):
        terminal.data(line)


@data.command("cat")
@click.argument("pack", shell_complete=_complete_pack)
@click.argument("name")
def cat(pack: str, name: str) -> None:
    """Print one file of a pack."""
    for piece in journey.content(journey.pack_called(pack, home()), name):
        terminal.raw(piece)


@data.command("extract")
@click.argument("pack", shell_complete=_complete_pack)
@click.argument("names", nargs=-1)
@click.option(
    "--into", type=click.Path(path_type=Path), default=Path(), help="The folder to extract to."
)
@quiet_option
def extract(pack: str, names: tuple[str, ...], *, into: Path, quiet: bool) -> None:
    """Extract files or folders from a pack; by default all of it.

    Existing files are not overwritten. After an interruption, the same command continues.
    """
    with terminal.steps(quiet=quiet) as reporter:
        count = journey.extract(journey.pack_called(pack, home()), names, into, reporter)
        reporter.step(f"extracted {counted(count, 'file')} to {into.absolute()}")


@data.command("advise")
@click.argument("folder", metavar="FOLDER | DATASET", type=click.Path(path_type=Path))
@click.option(
    "--on", default="", metavar="CLUSTER", help="Also measure the storage of this cluster."
)
@json_option
def advise(folder: Path, *, on: str, as_json: bool) -> None:
    """Measure whether packing a folder is worth it.

    Also says how the program should read it. Disks are measured with a few megabytes, which are
    deleted afterwards. With --on, a dataset that is on that cluster (`at`) is measured there.
    """
    if folder.is_dir():
        advice = data_advice.advise(folder, home(), on)
    elif on and is_in_project(Path.cwd()):
        advice = data_advice.advise_there(str(folder), Path.cwd(), home(), on)
    else:
        raise click.BadParameter(f"there is no folder `{folder}`", param_hint="FOLDER")
    if as_json:
        terminal.json(advice)
        return
    for line in _sentences(advice, on, there=not folder.is_dir()):
        terminal.data(line)


def _sentences(advice: Advice, on: str, *, there: bool) -> Iterator[str]:
    mean, where = advice.bytes // advice.files, f"on {on}" if there else "here"
    files = counted(advice.files, "file")
    yield f"{files}, about {say_size(advice.bytes)}, {say_size(mean)} each"
    yield (
        f"reading them one by one takes {say_seconds(advice.read_as_files)} {where}, "
        f"as shards about {say_seconds(advice.read_as_shards)}"
    )
    if advice.tiers:
        yield from _measured_there(advice)
        yield f"on {on} it would be read from {advice.tier}: {advice.why}"
    if advice.python_only:
        missing = f"the compiled part of rabaska does not load on {on}: {advice.python_only}"
        yield f"{missing}; Python does its work, slower"
    if advice.pack:
        yield f'pack it, and use `as = "{advice.mode}"`'
    else:
        yield "do not pack it for speed: its files are few and large"
    if there:
        return  # nothing of it is sent
    if advice.compresses:
        yield f"it compresses to {advice.shrinks_to:.0%}: let ssh compress it during the transfer"
    else:
        yield f"compression is not worth it: it compresses only to {advice.shrinks_to:.0%}"


def _measured_there(advice: Advice) -> list[str]:
    """How long everything would take on each storage of the cluster."""
    rows: list[list[object]] = []
    for tier in advice.tiers:
        if tier.why:
            rows.append([tier.tier, tier.path, tier.why, "", "", "", ""])
            continue
        spans = (
            tier.epoch_of_files(advice.dataset),
            tier.epoch_of_shards(advice.dataset),
            tier.staged_as_files(advice.dataset),
            tier.staged_as_shards(advice.dataset),
        )
        rows.append([tier.tier, tier.path, say_size(tier.free), *map(say_seconds, spans)])
    headings = (
        "storage",
        "where",
        "free",
        "files read in",
        "shards read in",
        "unpacked in",
        "copied in",
    )
    return columns(rows, headings, right=headings[2:])
