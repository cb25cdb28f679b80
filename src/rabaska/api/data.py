"""`rabaska data …`: look into packs, check them, take files out of them.

A pack is named by its dataset, its full name or its folder.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from rabaska.api.runs import Folder
from rabaska.journeys import data as _data
from rabaska.journeys import data_advice
from rabaska.journeys import globus as _globus
from rabaska.journeys.data import LocalPack, PackVerdict
from rabaska.journeys.data_there import DataThere, data_there
from rabaska.journeys.globus import GlobusTransfer
from rabaska.journeys.pack_there import PackedThere, PackThereOptions, pack_there
from rabaska.journeys.verify_there import repair_there, verify_there
from rabaska.packing.pack_advice import Advice
from rabaska.records.home import home, made_home
from rabaska.steps.progress import SilentReporter


@dataclass(frozen=True)
class PackedFile:
    """A file, folder or link in a pack."""

    name: str
    size: int  # bytes
    target: str  # of a link


def verify(
    *packs: str, on: str = "", repair: bool = False, folder: Folder = "."
) -> Sequence[PackVerdict]:
    """Compare every byte of packs with their manifests; without names, all the project's.

    With `on`, the packs on that cluster. `repair` packs again what is damaged, or sends it.
    The verdicts are those before the repair.
    """
    project = Path(folder).absolute()
    silent = SilentReporter()
    if on:
        verdicts = verify_there(packs, project, on, home())
    else:
        paths = [_data.pack_called(pack, home()) for pack in packs]
        verdicts = _data.verify(paths or _data.folders_of(project, home()), silent)
    damaged = [verdict.folder for verdict in verdicts if verdict.problems]
    if repair and damaged and on not in ("", "here"):
        repair_there(damaged, project, on, home(), silent)
    elif repair and damaged:
        _data.repair(damaged, project, home(), silent)
    return verdicts


@overload
def ls(*, folder: Folder = ".") -> Sequence[LocalPack]: ...


@overload
def ls(pack: str, below: str = "") -> Sequence[PackedFile]: ...


@overload
def ls(*, on: str) -> Sequence[DataThere]: ...


def ls(
    pack: str = "", below: str = "", *, on: str = "", folder: Folder = "."
) -> Sequence[LocalPack] | Sequence[PackedFile] | Sequence[DataThere]:
    """The project's packs; or the files of one pack, or of one folder in it.

    With `on`, what that cluster has: packs, downloads, and datasets of the site.
    """
    if on:
        return data_there(on, home())
    if not pack:
        return _data.kept(Path(folder).absolute(), home())
    entries = _data.entries(_data.pack_called(pack, home()), below)
    return [
        PackedFile(os.fsdecode(entry.name), entry.size, os.fsdecode(entry.target))
        for entry in entries
    ]


def pack(
    *datasets: str, on: str, again: bool = False, job: bool | None = None, folder: Folder = "."
) -> Sequence[PackedThere]:
    """Pack datasets where they are: on the cluster, if `at`, `url` or `fetch` names them.

    `job` packs in a job, or, if it is false, at once; by default a job packs what is too large.
    """
    options = PackThereOptions(again, job)
    return pack_there(Path(folder).absolute(), datasets, on, made_home(), SilentReporter(), options)


def globus(
    dataset: str, *, on: str, start: bool = False, endpoint: str = "", folder: Folder = "."
) -> GlobusTransfer:
    """Take up the pack of a dataset that Globus brought; else the command that brings it.

    `start` begins the transfer. `endpoint` is this computer's, `--from` on the command line.
    """
    return _globus.globus(
        Path(folder).absolute(), dataset, on, made_home(), SilentReporter(),
        start=start, endpoint=endpoint,
    )  # fmt: skip


def cat(pack: str, name: str) -> bytes:
    """The content of one file of a pack."""
    return b"".join(_data.content(_data.pack_called(pack, home()), name))


def extract(pack: str, *names: str, into: Folder = ".") -> int:
    """Take files or folders out of a pack; without names, all. Returns how many files."""
    path = _data.pack_called(pack, home())
    return _data.extract(path, names, Path(into), SilentReporter())


def advise(folder: Folder, *, on: str = "") -> Advice:
    """Measure a folder: whether packing it pays, and how the program should read it.

    With `on`, the name of a dataset that is on that cluster may be given instead.
    """
    if on and not Path(folder).is_dir():
        return data_advice.advise_there(str(folder), Path.cwd(), made_home(), on)
    return data_advice.advise(Path(folder), made_home(), on)
