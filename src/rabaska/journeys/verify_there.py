"""Verify there: the packs that a cluster has, and how those that are damaged are repaired.

A pack that this computer has as well is sent again. One that was made there is made again there.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from rabaska.errors import DamagedPack, WrongUse
from rabaska.journeys.data import (
    PackVerdict,
    folders_of,
    made_again,
    names_of,
    pack_called,
    packed_from,
    query,
    verify,
)
from rabaska.journeys.pack_there import PackThereOptions, pack_there
from rabaska.node.data.pack_format import MANIFEST
from rabaska.node.files import PARTIAL
from rabaska.records.home import Home
from rabaska.remote.place import quoted
from rabaska.settings.project_file import load
from rabaska.steps.carry import parcel_of
from rabaska.steps.connect import ConnectedCluster, connect
from rabaska.steps.progress import Reporter, progress_of


def verify_there(names: Sequence[str], folder: Path, on: str, home: Home) -> list[PackVerdict]:
    """What is wrong with these packs on a cluster, or with all of the project around `folder`."""
    cluster = connect(on, home)
    present = _packs_on(cluster)
    packs = [_called(name, present, home) for name in names] or _of_project(folder, present, home)
    answers = [query(cluster, ([str], None), "verify", _path(pack, cluster)) for pack in packs]
    if packs and all(problems is None for problems in answers):
        raise WrongUse(
            f"{on} has no copy of {' or '.join(pack.name for pack in packs)}",
            hint=f"`rabaska run --on {on}` sends one",
        )
    return [
        PackVerdict(pack.name, pack, problems)
        for pack, problems in zip(packs, answers, strict=True)
        if problems is not None
    ]


def _path(pack: Path, cluster: ConnectedCluster) -> str:
    return f"{cluster.store}/packs/{pack.name}"


def _packs_on(cluster: ConnectedCluster) -> list[str]:
    """The newest first."""
    listed = cluster.place.run(f"ls -t {quoted([f'{cluster.store}/packs'])} 2>/dev/null")
    return [name for name in listed.output.splitlines() if not name.endswith(PARTIAL)]


def _called(name: str, present: Sequence[str], home: Home) -> Path:
    try:
        return pack_called(name, home)
    except WrongUse:
        there = [each for each in present if fnmatchcase(each, f"{name}*")]
        if not there:
            raise
        return home.store / "packs" / there[0]


def _of_project(folder: Path, present: Sequence[str], home: Home) -> list[Path]:
    datasets = names_of(folder)
    there = [
        home.store / "packs" / name
        for name in sorted(present)
        if datasets is None or name.rpartition("-")[0] in datasets
    ]
    return list(dict.fromkeys([*folders_of(folder, home), *there]))


def repair_there(
    packs: Sequence[Path], folder: Path, on: str, home: Home, reporter: Reporter
) -> list[Path]:
    """Send these packs to a cluster again, or make them there again; those that are repaired now.

    The others are made by a job, or their data has changed.
    """
    ours = [pack for pack in packs if (pack / MANIFEST).is_file()]
    if ours:
        _send_again(ours, on, home, reporter)
    theirs = [pack for pack in packs if pack not in ours]
    return [*ours, *(p for p in theirs if _make_again(p.name, folder, on, home, reporter))]


def _send_again(packs: Sequence[Path], on: str, home: Home, reporter: Reporter) -> None:
    for ours in verify(packs, reporter):
        if ours.problems:
            raise DamagedPack(
                f"{ours.pack} is damaged on this computer, too",
                why="; ".join(ours.problems),
                hint=made_again(ours.pack),
            )
    cluster = connect(on, home)
    parcels = [parcel_of(pack, cluster, doubted=True) for pack in packs]
    cluster.place.deliver(parcels, cluster, progress_of(f"sending to {on}", reporter))


def _make_again(pack: str, folder: Path, on: str, home: Home, reporter: Reporter) -> bool:
    (dataset,) = packed_from(pack, load(folder, cluster=on)).datasets
    again = PackThereOptions(again=True)
    (packed,) = pack_there(folder, [dataset.name], on, home, reporter, again)
    if packed.pack and packed.pack != pack:
        reporter.warn(
            f"the dataset has changed since {pack} was made: it is {packed.pack} now; runs that "
            f"use {pack} cannot resume, and `rabaska run` starts a new one"
        )
    return packed.pack == pack
