"""Commands about data: look into packs, check them, take files out, advise."""

import os
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from rabaska.cli import terminal
from rabaska.cli.options import json_option, quiet_option
from rabaska.cli.text import columns
from rabaska.domain.amounts import say_seconds, say_size
from rabaska.errors import DamagedPack
from rabaska.journeys import data as journey
from rabaska.node.data.pack_format import FOLDER, LINK
from rabaska.packing.pack_advice import Advice
from rabaska.records.home import home
from rabaska.steps.progress import Reporter

_NO_PACK = "there is no pack yet; `rabaska pack` makes one of every dataset"


@click.group()
def data() -> None:
    """Look into packs without unpacking them, check them, or ask whether packing pays."""


def _complete_pack(
    _ctx: click.Context, _param: click.Parameter, typed: str
) -> list[CompletionItem]:
    names = {one.name for one in journey.kept(Path.cwd(), home())}
    return [CompletionItem(name) for name in sorted(names) if name.startswith(typed)]


@data.command("verify")
@click.argument("names", nargs=-1, metavar="[PACK]...", shell_complete=_complete_pack)
@click.option("--on", default="", metavar="CLUSTER", help="Check the copies on that cluster.")
@click.option(
    "--repair", is_flag=True, help="Pack what is damaged again; with --on, send it again."
)
@quiet_option
@json_option
def verify(names: tuple[str, ...], *, on: str, repair: bool, quiet: bool, as_json: bool) -> None:
    """Compare every byte of packs with what their manifests say; without PACK, all the project's.

    Exits with 5 if one of them is damaged.
    """
    packs = [journey.pack_called(name, home()) for name in names]
    packs = packs or journey.folders_of(Path.cwd(), home())
    with terminal.steps(quiet=quiet or as_json) as told:
        verdicts = journey.verify_on(packs, on, home()) if on else journey.verify(packs, told)
        for one in verdicts:
            if not one.problems:
                told.step(f"{one.pack} is whole")
        damaged = [one for one in verdicts if one.problems]
        if repair and damaged:
            _repair([one.folder for one in damaged], on, told)
    if as_json:
        terminal.json(verdicts)
    elif not verdicts:
        terminal.note(_NO_PACK)
    if damaged and not repair:
        raise _damage(damaged, on)


def _repair(packs: list[Path], on: str, told: Reporter) -> None:
    if on not in ("", "here"):
        journey.repair_on(packs, on, home(), told)
    else:
        journey.repair(packs, Path.cwd(), home(), told)
    told.step(f"repaired{f' on {on}' if on else ''}: {', '.join(pack.name for pack in packs)}")


def _damage(damaged: list[journey.PackVerdict], on: str) -> DamagedPack:
    first = damaged[0]
    sent_again = f"`rabaska data verify {first.pack} --on {on} --repair` sends it again"
    return DamagedPack(
        " and ".join(f"{one.pack} is damaged" for one in damaged),
        why="; ".join(problem for one in damaged for problem in one.problems),
        hint=sent_again if on else journey.made_again(first.pack),
    )


@data.command("ls")
@click.argument("pack", default="", shell_complete=_complete_pack)
@click.argument("below", default="")
@json_option
def ls(pack: str, below: str, *, as_json: bool) -> None:
    """List the files of a pack, or of one folder in it; without PACK, the project's packs."""
    if not pack:
        _list_packs(as_json=as_json)
        return
    found = journey.entries(journey.pack_called(pack, home()), below)
    if as_json:
        terminal.json([{"name": os.fsdecode(one.name), "size": one.size} for one in found])
        return
    for one in found:
        name = os.fsdecode(one.name) + ("/" if one.kind == FOLDER else "")
        target = f" -> {os.fsdecode(one.target)}" if one.kind == LINK else ""
        terminal.data(f"{one.size:12d}  {name}{target}")


def _list_packs(*, as_json: bool) -> None:
    found = journey.kept(Path.cwd(), home())
    if as_json:
        terminal.json(found)
        return
    if not found:
        terminal.note(_NO_PACK)
        return
    rows = [
        (one.name, f"{one.files:,}", say_size(one.bytes), one.digest[:12], one.folder)
        for one in found
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
@click.option("--into", type=click.Path(path_type=Path), default=Path(), help="Where to put them.")
@quiet_option
def extract(pack: str, names: tuple[str, ...], *, into: Path, quiet: bool) -> None:
    """Take files or folders out of a pack; without names, all of it.

    Nothing is overwritten; after an interruption, the same words go on where it stopped.
    """
    with terminal.steps(quiet=quiet) as told:
        count = journey.extract(journey.pack_called(pack, home()), names, into, told)
        told.step(f"extracted {count:,} files into {into.absolute()}")


@data.command("advise")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--on", default="", metavar="CLUSTER", help="Measure that cluster's storage too.")
@json_option
def advise(folder: Path, *, on: str, as_json: bool) -> None:
    """Measure a folder and say whether packing it pays, and how the program should read it.

    Disks are measured with a few megabytes, which are removed again.
    """
    advice = journey.advise(folder, home(), on)
    if as_json:
        terminal.json(advice)
        return
    for line in _sentences(advice, on):
        terminal.data(line)


def _sentences(advice: Advice, on: str) -> Iterator[str]:
    mean = advice.bytes // advice.files
    yield f"{advice.files:,} files, about {say_size(advice.bytes)}, {say_size(mean)} each"
    yield (
        f"reading them one by one takes {say_seconds(advice.read_as_files)} here, "
        f"as shards about {say_seconds(advice.read_as_shards)}"
    )
    if advice.tiers:
        yield from _measured_there(advice)
        yield f"on {on} it would be read from {advice.tier}: {advice.why}"
    if advice.pack:
        yield f'pack it, and use `as = "{advice.mode}"`'
    else:
        yield "do not pack it for speed: its files are few and large"
    if advice.compresses:
        yield f"it compresses to {advice.shrinks_to:.0%}: let ssh compress on the way"
    else:
        yield f"compressing does not pay: {advice.shrinks_to:.0%} would be left"


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
