"""Commands about data: look into packs, check them, take files out, advise."""

import os
from pathlib import Path

import click

from rabaska.cli import show
from rabaska.cli.words import json_option
from rabaska.domain.amounts import say_size
from rabaska.errors import DamagedPack
from rabaska.journeys import data as journey
from rabaska.node.data.packs import FOLDER, LINK
from rabaska.packing.advice import Advice
from rabaska.records.home import home


@click.group()
def data() -> None:
    """Look into packs without unpacking them, check them, or ask whether packing pays."""


@data.command("verify")
@click.argument("pack")
@click.option("--on", default="", metavar="CLUSTER", help="Check the copy on that cluster.")
def verify(pack: str, *, on: str) -> None:
    """Compare every byte of a pack with what its manifest says."""
    if on:
        problems = journey.verify_on(pack, on, home())
    else:
        problems = journey.verify(journey.pack_called(pack, home()))
    if problems:
        raise DamagedPack(
            f"{pack} is damaged",
            why="; ".join(problems),
            hint="`rabaska pack` makes it again from the dataset",
        )
    show.note(f"{pack} is whole")


@data.command("ls")
@click.argument("pack")
@click.argument("below", default="")
@json_option
def ls(pack: str, below: str, *, as_json: bool) -> None:
    """List the files of a pack, or of one folder in it."""
    found = journey.entries(journey.pack_called(pack, home()), below)
    if as_json:
        show.json([{"name": os.fsdecode(one.name), "size": one.size} for one in found])
        return
    for one in found:
        name = os.fsdecode(one.name) + ("/" if one.kind == FOLDER else "")
        target = f" -> {os.fsdecode(one.target)}" if one.kind == LINK else ""
        show.data(f"{one.size:12d}  {name}{target}")


@data.command("cat")
@click.argument("pack")
@click.argument("name")
def cat(pack: str, name: str) -> None:
    """Print one file of a pack."""
    for piece in journey.content(journey.pack_called(pack, home()), name):
        show.raw(piece)


@data.command("extract")
@click.argument("pack")
@click.argument("names", nargs=-1)
@click.option("--into", type=click.Path(path_type=Path), default=Path(), help="Where to put them.")
def extract(pack: str, names: tuple[str, ...], *, into: Path) -> None:
    """Take files or folders out of a pack; without names, all of it."""
    count = journey.extract(journey.pack_called(pack, home()), names, into)
    show.note(f"extracted {count:,} files into {into.absolute()}")


@data.command("advise")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@json_option
def advise(folder: Path, *, as_json: bool) -> None:
    """Measure a folder and say whether packing it pays, and how the program should read it."""
    advice = journey.advise(folder)
    if as_json:
        show.json(advice)
        return
    for line in _sentences(advice):
        show.data(line)


def _sentences(advice: Advice) -> list[str]:
    mean = advice.bytes // advice.files
    lines = [
        f"{advice.files:,} files, about {say_size(advice.bytes)}, {say_size(mean)} each",
        f"reading them one by one takes {advice.read_as_files:.1f} s here, "
        f"as shards about {advice.read_as_shards:.1f} s",
    ]
    if advice.pack:
        lines.append(f'pack it, and use `as = "{advice.mode}"`')
    else:
        lines.append("do not pack it for speed: its files are few and large")
    if advice.compresses:
        lines.append(f"it compresses to {advice.shrinks_to:.0%}: let ssh compress on the way")
    else:
        lines.append(f"compressing does not pay: {advice.shrinks_to:.0%} would be left")
    return lines
