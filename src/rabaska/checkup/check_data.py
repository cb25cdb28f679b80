"""Checks of the datasets: what they are made of, and whether they fit."""

import os
import posixpath
from collections.abc import Iterator

from rabaska.checkup.finding import Finding
from rabaska.checkup.subject import Subject, leave_out, own_line
from rabaska.domain.amounts import say_count, say_size
from rabaska.domain.clusters import NodeDisk
from rabaska.domain.projects import Dataset
from rabaska.scouting.dataset_contents import Contents

_MANY_FILES = 1_000_000  # a day's work for a node's disk
_MOSTLY = 0.5  # of a dataset's bytes
_WORTH_TELLING = 0.1  # of a dataset's bytes are there twice
_FEW_TWICE = 10
_SOURCES = (".py", ".ipynb", ".sh", ".c", ".cpp", ".cu", ".h", ".toml", ".yaml", ".yml")
_NODES_SHARE = 0.8  # of a node's disk: others use it too


def checks(subject: Subject) -> Iterator[Finding]:
    for dataset in subject.project.datasets:
        if not dataset.path or not os.access(dataset.path, os.R_OK):
            continue  # it is elsewhere, or nowhere: see `check_data_places`
        contents = subject.contents.get(dataset.name, Contents())
        yield from _nothing(dataset, contents)
        yield from _archives(dataset, contents)
        yield from _empty_files(dataset, contents)
        yield from _twice(dataset, contents)
        yield from _many_files(dataset, contents)
        yield from _too_large(dataset, contents, subject)
    yield from _loose(subject)
    yield from _outside(subject)


def _key(dataset: Dataset) -> str:
    return f"[data.{dataset.name}] {dataset.path}"


def _nothing(dataset: Dataset, contents: Contents) -> Iterator[Finding]:
    if contents.files == 0:
        yield Finding(
            "data.empty",
            f"dataset {dataset.name} has no files",
            _key(dataset),
            "the program would find nothing to train on",
            "correct `path`, or put the data there",
        )


def _archives(dataset: Dataset, contents: Contents) -> Iterator[Finding]:
    packed = sum(size for _, size in contents.archives)
    if contents.archives and packed > _MOSTLY * contents.size:
        name = contents.archives[0][0]
        yield Finding(
            "data.archive",
            f"dataset {dataset.name} is mostly an archive, {name}",
            _key(dataset),
            "rabaska packs folders itself; the program would have to unpack this archive",
            "unpack it here, and delete the archive from the folder",
            serious=False,
        )


def _empty_files(dataset: Dataset, contents: Contents) -> Iterator[Finding]:
    if contents.empty:
        some = ", ".join(contents.empty[:3])
        yield Finding(
            "data.hollow",
            f"{say_count(len(contents.empty), 'empty file')} in dataset {dataset.name}: {some}",
            _key(dataset),
            "an interrupted download leaves such files",
            "download them again, or delete them",
            serious=False,
        )


def _twice(dataset: Dataset, contents: Contents) -> Iterator[Finding]:
    if contents.twice >= _FEW_TWICE and contents.twice_size > _WORTH_TELLING * contents.size:
        yield Finding(
            "data.twice",
            f"{say_count(contents.twice, 'file')} of dataset {dataset.name} are copies of others "
            f"({say_size(contents.twice_size)})",
            _key(dataset),
            "they are sent, stored and staged twice, and may leak into validation",
            "delete them, or keep only links to one copy",
            serious=False,
        )


def _many_files(dataset: Dataset, contents: Contents) -> Iterator[Finding]:
    if contents.files >= _MANY_FILES and dataset.mode == "files":
        yield Finding(
            "data.many",
            f"dataset {dataset.name} has {say_count(contents.files, 'file')}",
            _key(dataset),
            "unpacking so many on the node slows the start of every job",
            f'write `as = "shards"` under [data.{dataset.name}], and read them with '
            "`rabaska.training.PackedDataset`",
            serious=False,
        )


def _too_large(dataset: Dataset, contents: Contents, subject: Subject) -> Iterator[Finding]:
    tier = subject.cluster.store_tier
    if tier and tier.size and contents.size > tier.size:
        yield Finding(
            "data.quota",
            f"dataset {dataset.name} ({say_size(contents.size)}) exceeds a quota",
            _key(dataset),
            f"{tier.name} of {subject.cluster.name} allows {say_size(tier.size)}",
            f"ask the site for more{_roomier(contents.size, subject)}",
            serious=False,
            likely=True,
        )
    room = room_on_node(subject)
    if room and contents.size > _NODES_SHARE * room and dataset.mode == "files":
        yield Finding(
            "data.node",
            f"dataset {dataset.name} ({say_size(contents.size)}) is too large for a node",
            _key(dataset),
            f"the nodes' own space is {say_size(room)}, shared with other jobs",
            f"write {own_line(subject, f'data.{dataset.name}', 'as', 'shards')}: shards are read "
            "in place when there is no room",
            serious=False,
        )


def _roomier(size: int, subject: Subject) -> str:
    """The tiers that would hold it, for the profile's `store`."""
    shared = [tier for tier in subject.cluster.storage if tier.scope != "node" and tier.path]
    fitting = [f"{tier.name} ({say_size(tier.size)})" for tier in shared if tier.size >= size]
    return f", or name a `store` in {' or '.join(fitting)}" if fitting else ""


def room_on_node(subject: Subject) -> int:
    disk = disk_on_node(subject)
    return disk.size if disk else 0


def disk_on_node(subject: Subject) -> NodeDisk | None:
    """The nodes' own disk, as the profile says, or as jobs of the same queue saw it."""
    cluster, queue = subject.cluster, subject.partition
    if queue and queue.local:
        return NodeDisk(queue.local)
    local = cluster.local_space
    sizes = [tier.size for tier in cluster.storage if local and tier.path == local and tier.size]
    if sizes:
        return NodeDisk(sizes[0])
    # A job that names no queue goes to the default one.
    names = [subject.project.queue, *([queue.called] if queue else [])]
    names += [""] if queue and queue.default else []
    return next((cluster.disks[name] for name in names if name in cluster.disks), None)


def _loose(subject: Subject) -> Iterator[Finding]:
    copies = {name: dataset for dataset, name in _copies(subject)}
    for name, dataset in copies.items():
        yield Finding(
            "data.copy",
            f"{name} looks like a copy of dataset {dataset.name}, and is sent as code",
            name,
            f"jobs read {dataset.at or 'what is downloaded'}, not this folder",
            leave_out(subject.project, name),
            serious=False,
            likely=True,
        )
    for folder in subject.loose:
        if folder.name in copies:
            continue
        yield Finding(
            "data.loose",
            f"{folder.name} looks like data ({say_count(folder.files, 'file')}, "
            f"{say_size(folder.size)}) and is sent as code",
            folder.name,
            "code is sent again with every change, and unpacked by every job",
            f"{leave_out(subject.project, folder.name)}, or name it under [data]",
            serious=False,
        )


def _copies(subject: Subject) -> Iterator[tuple[Dataset, str]]:
    """Folders of the project that are sent, and named like a dataset that is elsewhere."""
    for dataset in subject.project.datasets:
        if dataset.path or subject.sent is None:
            continue
        names = {dataset.name.lower(), posixpath.basename(dataset.at.rstrip("/")).lower()}
        folders = {
            posixpath.join(*parts[: place + 1])
            for parts in (file.split("/") for file in subject.sent)
            for place, part in enumerate(parts[:-1])
            if part.lower() in names
        }
        for folder in sorted(folders):
            inside = [file for file in subject.sent if file.startswith(f"{folder}/")]
            if not any(file.endswith(_SOURCES) for file in inside):
                yield dataset, folder


def _outside(subject: Subject) -> Iterator[Finding]:
    for use in subject.outside:
        yield Finding(
            "data.outside",
            f"the program reads {use.path}, which is not sent",
            use.evidence,
            "folders above the project are not sent with its code",
            f'name it: `[data.NAME]` with `path = "{use.path}"`, or with `at` and its path on the '
            "cluster if it is there, and give the program `{data}`; `rabaska init` shows how",
            serious=False,
            likely=True,
        )
