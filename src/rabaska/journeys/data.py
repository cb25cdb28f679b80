"""Data: look into packs, check them, take files out of them, and advise before packing."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rabaska.domain import untrusted
from rabaska.domain.data_placement import TierSpeed, best_mode, place
from rabaska.domain.projects import Dataset
from rabaska.errors import DamagedPack, DatasetError, SettingsError, WrongUse
from rabaska.journeys.pack import pack_dataset
from rabaska.node import partial_folder, umask
from rabaska.node.data import pack_files, pack_format, storage_speed
from rabaska.node.data import pack_files as taking
from rabaska.node.data import verify as checking
from rabaska.node.data.pack_format import MANIFEST, Entry
from rabaska.node.files import PARTIAL
from rabaska.packing.pack_advice import Advice
from rabaska.packing.pack_advice import advise as measured
from rabaska.packing.pack_cache import whole
from rabaska.records.home import Home
from rabaska.remote.local_disk import unwritable
from rabaska.settings.project_file import find, load
from rabaska.steps.carry import parcel_of
from rabaska.steps.connect import ConnectedCluster, connect
from rabaska.steps.progress import Reporter, progress_of

# What the node side answers; see `measure` there.
_MEASURED = {
    "path?": str,
    "free?": int,
    "files?": (int, None),
    "write?": float,
    "read?": float,
    "seconds_to_make?": untrusted.TIME,
    "seconds_to_read?": untrusted.TIME,
    "why?": str,
}


@dataclass(frozen=True)
class LocalPack:
    """A pack that lies in our store."""

    name: str
    files: int
    bytes: int
    digest: str
    folder: Path


@dataclass(frozen=True)
class PackVerdict:
    """What was found when every byte of a pack was read."""

    pack: str
    folder: Path  # on this computer, also of a copy elsewhere
    problems: list[str]


def kept(folder: Path, home: Home) -> list[LocalPack]:
    """The packs of the project around `folder`, or all of them where there is no project."""
    return [
        LocalPack(one.name, one.files, one.bytes, one.digest, home.store / "packs" / one.identity)
        for one in map(whole, folders_of(folder, home))
        if one
    ]


def folders_of(folder: Path, home: Home) -> list[Path]:
    """Where these packs lie, damaged ones included."""
    names = _names(folder)
    found = _packs_in(home.store / "packs")
    return [path for path in found if names is None or path.name.rpartition("-")[0] in names]


def _packs_in(store: Path) -> list[Path]:
    """But for what is being made there, or was set aside."""
    found = sorted(path.parent for path in store.glob(f"*/{MANIFEST}"))
    return [path for path in found if not path.name.endswith(PARTIAL)]


def _names(folder: Path) -> set[str] | None:
    """The datasets of the project around `folder`; None where there is no project."""
    try:
        find(folder)
    except SettingsError:
        return None
    return {dataset.name for dataset in load(folder).datasets}


def pack_called(name: str, home: Home) -> Path:
    """The pack in the folder `name`, or the newest one of that name or digest in our store."""
    if os.path.isfile(Path(name, MANIFEST)):  # noqa: PTH113 - false for what can be no path
        return Path(name)
    store = home.store / "packs"
    ready = [folder for folder in _packs_in(store) if fnmatchcase(folder.name, f"{name}*")]
    if ready:
        return max(ready, key=lambda folder: folder.stat().st_mtime_ns)
    known = [folder.name for folder in _packs_in(store)]
    raise WrongUse(
        f"there is no pack called `{name}`",
        why=f"{store} holds: {', '.join(known) or 'none'}",
        hint="`rabaska pack` makes one of every dataset in rabaska.toml",
    )


def verify(packs: Sequence[Path], teller: Reporter) -> list[PackVerdict]:
    """What is wrong with each pack; reads every byte."""
    verdicts = []
    for pack in packs:
        progress = progress_of(f"reading {pack.name}", teller)
        verdicts.append(PackVerdict(pack.name, pack, checking.verify(os.fspath(pack), progress)))
    return verdicts


def verify_on(packs: Sequence[Path], cluster: str, home: Home) -> list[PackVerdict]:
    """The same for the copies of these packs that a cluster has."""
    there = connect(cluster, home)
    copies = [f"{there.store}/packs/{pack.name}" for pack in packs]
    found = [_asked(there, ([str], None), "verify", copy) for copy in copies]
    if packs and all(problems is None for problems in found):
        raise WrongUse(
            f"{cluster} has no copy of {' or '.join(pack.name for pack in packs)}",
            hint=f"`rabaska run --on {cluster}` brings one along",
        )
    return [
        PackVerdict(pack.name, pack, problems)
        for pack, problems in zip(packs, found, strict=True)
        if problems is not None
    ]


def repair_on(packs: Sequence[Path], cluster: str, home: Home, teller: Reporter) -> None:
    """Send what is damaged of these packs on a cluster again, if ours are whole."""
    for ours in verify(packs, teller):
        if ours.problems:
            raise DamagedPack(
                f"{ours.pack} is damaged on this computer, too",
                why="; ".join(ours.problems),
                hint=made_again(ours.pack),
            )
    there = connect(cluster, home)
    parcels = [parcel_of(pack, there, doubted=True) for pack in packs]
    there.place.deliver(parcels, there, progress_of(f"sending to {cluster}", teller))


def made_again(pack: str) -> str:
    return f"`rabaska data verify {pack} --repair`, in the project's folder, packs it again"


def repair(packs: Sequence[Path], folder: Path, home: Home, teller: Reporter) -> None:
    """Pack the datasets of these packs again, from the project around `folder`."""
    datasets = {dataset.name: dataset for dataset in load(folder).datasets}
    for pack in packs:
        dataset = datasets.get(pack.name.rpartition("-")[0])
        if dataset is None:
            raise DamagedPack(
                f"{pack.name} cannot be packed again",
                why=f"the project in {folder} has no such dataset",
                hint="run the command in the folder of its project",
            )
        _pack_again(pack, dataset, home, teller)


def _pack_again(pack: Path, dataset: Dataset, home: Home, teller: Reporter) -> None:
    # What is damaged goes first, or its shards would be taken over as good.
    aside = pack.rename(pack.with_name(partial_folder.temporary_name(pack.name)))
    try:
        made = pack_dataset(dataset, home, teller)
    except BaseException:
        aside.rename(pack)
        raise
    partial_folder.remove_tree(os.fspath(aside))
    if made.identity != pack.name:
        teller.warn(
            f"the dataset has changed since {pack.name} was packed, which is gone now: "
            "runs that read it here cannot be resumed"
        )


def entries(pack: Path, below: str) -> Iterator[Entry]:
    with _told(pack):
        yield from pack_files.entries(os.fspath(pack), os.fsencode(below.strip("/")))


def content(pack: Path, name: str) -> Iterator[bytes]:
    with _told(pack):
        yield from pack_files.pieces(os.fspath(pack), os.fsencode(name))


def extract(pack: Path, names: Sequence[str], target: Path, teller: Reporter) -> int:
    with _told(pack):
        wanted = [os.fsencode(name.strip("/")) for name in names]
        progress = progress_of(f"extracting {pack.name}", teller)
        try:
            with umask.AsUser():
                return taking.extract(os.fspath(pack), os.fspath(target), wanted, progress)
        except FileExistsError:
            raise
        except OSError as problem:
            raise unwritable(problem, target, "choose another one with `--into`") from problem


def advise(folder: Path, home: Home, on: str = "") -> Advice:
    """What was measured of a folder, of this disk and, with `on`, of a cluster's storage."""
    home.store.mkdir(parents=True, exist_ok=True)
    advice = measured(folder, storage_speed.measured(os.fspath(home.store))["read"])
    return _advised_for(advice, connect(on, home)) if on else advice


def _advised_for(advice: Advice, there: ConnectedCluster) -> Advice:
    """The same with the figures of a cluster, whose storage decides there."""
    tiers, queue = _tiers(there), there.cluster.partition("")
    memory = queue.memory_per_gpu if queue else 0
    (placed,) = place([("it", advice.bytes)], there.cluster, queue, memory)
    known = {tier.path: tier for tier in tiers if not tier.why}
    shared = known.get(there.store)
    return replace(
        advice,
        pack=shared.packing_pays(advice.dataset) if shared else advice.pack,
        mode=best_mode(advice.dataset, known.get(placed.read)),
        tiers=tiers,
        tier=placed.read,
        why=placed.why,
    )


def _tiers(there: ConnectedCluster) -> tuple[TierSpeed, ...]:
    """Every storage of a cluster that its login node can reach, measured in one round trip."""
    local = there.cluster.local_space or there.scheduler.in_job().local_space
    asked = {"store": there.store, "node": local, **there.cluster.tiers}
    words = [f"{name}={path}" for name, path in asked.items() if path]
    told = _asked(there, {str: _MEASURED}, "measure", *words)
    known = {field.name for field in fields(TierSpeed)} - {"tier"}
    return tuple(
        TierSpeed(tier=name, **{key: figures[key] for key in known & figures.keys()})
        for name, figures in told.items()
    )


def _asked(there: ConnectedCluster, shape: untrusted.Shape, *words: str) -> Any:
    try:
        return untrusted.read(there.ask(*words).output, shape)
    except untrusted.Unexpected as problem:
        raise untrusted.unusable(there.cluster.name, problem) from problem


@contextmanager
def _told(pack: Path) -> Iterator[None]:
    """Turns what the node side raises into what a user is told."""
    try:
        yield
    except pack_format.DamagedPack as problem:
        raise DamagedPack(str(problem), hint=made_again(pack.name)) from problem
    except pack_files.NotInPack as problem:
        raise DatasetError(
            f"{pack.name}: {problem}", hint="`rabaska data ls` lists what it holds"
        ) from problem
    except FileExistsError as problem:
        raise DatasetError(
            f"{problem.filename} is already there",
            why="nothing is overwritten",
            hint="choose another folder with `--into`",
        ) from problem
    except OSError as problem:
        where = os.fsdecode(problem.filename or pack)
        raise DatasetError(f"{where}: {problem.strerror}") from problem
