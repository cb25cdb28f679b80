"""Checks of the datasets: what they are made of, and whether they fit."""

from collections.abc import Iterator

from rabaska.checkup.subject import Finding, Subject
from rabaska.domain.amounts import say_size
from rabaska.domain.projects import Dataset
from rabaska.scouting.dataset_contents import Contents

_MANY_FILES = 1_000_000  # a day's work for a node's disk
_MOSTLY = 0.5  # of a dataset's bytes
_WORTH_TELLING = 0.1  # of a dataset's bytes are there twice
_FEW_TWICE = 10
_NODES_SHARE = 0.8  # of a node's disk: others use it too


def checks(subject: Subject) -> Iterator[Finding]:
    for dataset in subject.project.datasets:
        held = subject.contents.get(dataset.name, Contents())
        yield from _nothing(dataset, held)
        yield from _archives(dataset, held)
        yield from _empty_files(dataset, held)
        yield from _twice(dataset, held)
        yield from _many_files(dataset, held)
        yield from _too_large(dataset, held, subject)
    yield from _loose(subject)
    yield from _outside(subject)


def _key(dataset: Dataset) -> str:
    return f"[data.{dataset.name}] {dataset.path}"


def _nothing(dataset: Dataset, held: Contents) -> Iterator[Finding]:
    if held.files == 0:
        yield Finding(
            "data.empty",
            f"dataset {dataset.name} holds no files",
            _key(dataset),
            "the program would find nothing to train on",
            "correct `path`, or put the data there",
        )


def _archives(dataset: Dataset, held: Contents) -> Iterator[Finding]:
    packed = sum(size for _, size in held.archives)
    if held.archives and packed > _MOSTLY * held.size:
        name = held.archives[0][0]
        yield Finding(
            "data.archive",
            f"dataset {dataset.name} is mostly an archive, {name}",
            _key(dataset),
            "rabaska packs folders into plain tar by itself; a program must unpack this one first",
            "unpack it here, and delete the archive from the folder",
            serious=False,
        )


def _empty_files(dataset: Dataset, held: Contents) -> Iterator[Finding]:
    if held.empty:
        some = ", ".join(held.empty[:3])
        yield Finding(
            "data.hollow",
            f"{len(held.empty)} files of dataset {dataset.name} are empty: {some}",
            _key(dataset),
            "a download that was cut short leaves such files",
            "fetch them again, or delete them",
            serious=False,
        )


def _twice(dataset: Dataset, held: Contents) -> Iterator[Finding]:
    if held.twice >= _FEW_TWICE and held.twice_size > _WORTH_TELLING * held.size:
        yield Finding(
            "data.twice",
            f"{held.twice} files of dataset {dataset.name} are copies of others "
            f"({say_size(held.twice_size)})",
            _key(dataset),
            "they are sent, kept and staged twice, and may leak into validation",
            "delete them, or keep only links to one copy",
            serious=False,
        )


def _many_files(dataset: Dataset, held: Contents) -> Iterator[Finding]:
    if held.files >= _MANY_FILES and dataset.mode == "files":
        yield Finding(
            "data.many",
            f"dataset {dataset.name} is {held.files:,} files",
            _key(dataset),
            "unpacking so many on the node takes long at the start of every job",
            'set `as = "shards"` and read them with `rabaska.training.PackedDataset`',
            serious=False,
        )


def _too_large(dataset: Dataset, held: Contents, subject: Subject) -> Iterator[Finding]:
    tier = subject.cluster.store_tier
    if tier and tier.size and held.size > tier.size:
        yield Finding(
            "data.quota",
            f"dataset {dataset.name} ({say_size(held.size)}) exceeds a quota",
            _key(dataset),
            f"{tier.name} of {subject.cluster.name} allows {say_size(tier.size)}",
            f"ask the site for more{_roomier(held.size, subject)}",
        )
    room = _room_on_node(subject)
    if room and held.size > _NODES_SHARE * room and dataset.mode == "files":
        yield Finding(
            "data.node",
            f"dataset {dataset.name} ({say_size(held.size)}) is too large for a node",
            _key(dataset),
            f"the nodes' own space is {say_size(room)}, shared with other jobs",
            'set `as = "shards"`: shards are read where they are when there is no room',
            serious=False,
        )


def _roomier(size: int, subject: Subject) -> str:
    """The tiers that would hold it, for the profile's `store`."""
    shared = [each for each in subject.cluster.storage if each.scope != "node" and each.path]
    fitting = [f"{each.name} ({say_size(each.size)})" for each in shared if each.size >= size]
    return f", or name a `store` in {' or '.join(fitting)}" if fitting else ""


def _room_on_node(subject: Subject) -> int:
    if subject.partition and subject.partition.local:
        return subject.partition.local
    local = subject.cluster.local_space
    fitting = [each for each in subject.cluster.storage if local and each.path == local]
    return next((each.size for each in fitting), 0)


def _loose(subject: Subject) -> Iterator[Finding]:
    for folder in subject.loose:
        yield Finding(
            "data.loose",
            f"{folder.name} looks like data ({folder.files:,} files, "
            f"{say_size(folder.size)}) and travels as code",
            folder.name,
            "code is sent again with every change, and unpacked by every job",
            f'name it under [data], or leave it behind: exclude = ["{folder.name}"] in [code]',
            serious=False,
        )


def _outside(subject: Subject) -> Iterator[Finding]:
    for use in subject.outside:
        yield Finding(
            "data.outside",
            f"the program reads {use.path}, which is not carried",
            use.evidence,
            "what lies above the project does not travel with its code",
            f'name it: `[data.NAME]` with `path = "{use.path}"`, and give the program `{{data}}`; '
            "`rabaska init` shows how",
        )
