"""Data: look into packs, check them, take files out of them, and advise before packing."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rabaska.domain import untrusted
from rabaska.domain.projects import Project
from rabaska.errors import DamagedPack, DatasetError, SettingsError, WrongUse
from rabaska.node import partial_folder, private_files
from rabaska.node.data import pack_files, pack_format
from rabaska.node.data import verify as verify_pack
from rabaska.node.data.pack_format import MANIFEST, Entry
from rabaska.node.files import PARTIAL
from rabaska.packing.pack_cache import complete_manifest
from rabaska.records.home import Home
from rabaska.remote.local_disk import unwritable
from rabaska.settings.project_file import find, load
from rabaska.steps.carry import ready_dataset
from rabaska.steps.connect import ConnectedCluster, connect
from rabaska.steps.prepare_data import locate
from rabaska.steps.progress import Reporter, progress_of


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
        LocalPack(
            manifest.name,
            manifest.files,
            manifest.bytes,
            manifest.digest,
            home.store / "packs" / manifest.identity,
        )
        for manifest in map(complete_manifest, folders_of(folder, home))
        if manifest
    ]


def folders_of(folder: Path, home: Home) -> list[Path]:
    """Where these packs lie, damaged ones included."""
    names = names_of(folder)
    folders = _packs_in(home.store / "packs")
    return [path for path in folders if names is None or path.name.rpartition("-")[0] in names]


def _packs_in(store: Path) -> list[Path]:
    """But for what is being made there, or was set aside."""
    folders = sorted(path.parent for path in store.glob(f"*/{MANIFEST}"))
    return [path for path in folders if not path.name.endswith(PARTIAL)]


def names_of(folder: Path) -> set[str] | None:
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
    names = [folder.name for folder in _packs_in(store)]
    raise WrongUse(
        f"there is no pack called `{name}`",
        why=f"{store} contains: {', '.join(names) or 'none'}",
        hint="`rabaska pack` makes one of every dataset in rabaska.toml",
    )


def verify(packs: Sequence[Path], reporter: Reporter) -> list[PackVerdict]:
    """What is wrong with each pack; reads every byte."""
    verdicts = []
    for pack in packs:
        progress = progress_of(f"reading {pack.name}", reporter)
        verdicts.append(PackVerdict(pack.name, pack, verify_pack.verify(os.fspath(pack), progress)))
    return verdicts


def made_again(pack: str) -> str:
    return f"`rabaska data verify {pack} --repair`, in the project's folder, packs it again"


def repair(packs: Sequence[Path], folder: Path, home: Home, reporter: Reporter) -> None:
    """Pack the datasets of these packs again, from the project around `folder`."""
    project = load(folder)
    for pack in packs:
        _pack_again(pack, packed_from(pack.name, project), home, reporter)


def packed_from(pack: str, project: Project) -> Project:
    """The project with that dataset alone of which the pack was made."""
    made = [dataset for dataset in project.datasets if dataset.name == pack.rpartition("-")[0]]
    if not made:
        raise DamagedPack(
            f"{pack} cannot be packed again",
            why=f"the project in {project.folder} has no such dataset",
            hint="run the command in the folder of its project",
        )
    return replace(project, datasets=tuple(made))


def _pack_again(pack: Path, project: Project, home: Home, reporter: Reporter) -> None:
    (dataset,) = project.datasets
    here = connect("here", home)
    path = locate(project, here).get(dataset.name, "")
    dataset = replace(dataset, mode="files" if dataset.at else dataset.mode)
    # What is damaged goes first, or its shards would be taken over as good.
    aside = pack.rename(pack.with_name(partial_folder.temporary_name(pack.name)))
    try:
        packed = ready_dataset(dataset, path, here, home, reporter)
    except BaseException:
        aside.rename(pack)
        raise
    partial_folder.remove_tree(os.fspath(aside))
    if packed.identity != pack.name:
        reporter.warn(
            f"the dataset has changed since {pack.name} was packed; that pack is removed, and "
            "runs that use it on this computer cannot resume"
        )


def entries(pack: Path, below: str) -> Iterator[Entry]:
    with _user_errors(pack):
        yield from pack_files.entries(os.fspath(pack), os.fsencode(below.strip("/")))


def content(pack: Path, name: str) -> Iterator[bytes]:
    with _user_errors(pack):
        yield from pack_files.pieces(os.fspath(pack), os.fsencode(name))


def extract(pack: Path, names: Sequence[str], target: Path, reporter: Reporter) -> int:
    with _user_errors(pack):
        paths = [os.fsencode(name.strip("/")) for name in names]
        progress = progress_of(f"extracting {pack.name}", reporter)
        try:
            with private_files.AsUser():
                return pack_files.extract(os.fspath(pack), os.fspath(target), paths, progress)
        except FileExistsError:
            raise
        except OSError as problem:
            raise unwritable(problem, target, "choose another one with `--into`") from problem


def query(cluster: ConnectedCluster, shape: untrusted.Shape, *words: str) -> Any:
    try:
        return untrusted.read(cluster.ask(*words).output, shape)
    except untrusted.Unexpected as problem:
        raise untrusted.unusable(cluster.cluster.name, problem) from problem


@contextmanager
def _user_errors(pack: Path) -> Iterator[None]:
    """Turns the exceptions of the node side into errors for users."""
    try:
        yield
    except pack_format.BadPack as problem:
        raise DamagedPack(str(problem), hint=made_again(pack.name)) from problem
    except pack_files.NotInPack as problem:
        raise DatasetError(
            f"{pack.name}: {problem}", hint="`rabaska data ls` lists what it holds"
        ) from problem
    except FileExistsError as problem:
        raise DatasetError(
            f"{problem.filename} already exists",
            why="nothing is overwritten",
            hint="choose another folder with `--into`",
        ) from problem
    except OSError as problem:
        where = os.fsdecode(problem.filename or pack)
        raise DatasetError(f"{where}: {problem.strerror}") from problem
