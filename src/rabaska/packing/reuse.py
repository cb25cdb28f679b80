"""Shards that are as they were: found by asking every file for its times, and linked, not read."""

import hashlib
import os
import shutil
from collections.abc import Iterator

from rabaska.node.data.packs import NO_CLASS, RECORD, Shard
from rabaska.packing.cutting import Cut
from rabaska.packing.draft import columns
from rabaska.packing.listing import unreadable
from rabaska.packing.memory import Kept
from rabaska.packing.reading import at_once
from rabaska.packing.shards import Job, Packed, Written, part_name, records_name
from rabaska.packing.taking import FACTS, numbers


def vouch(job: Job, cut: Cut) -> Iterator[tuple[int, str, int]]:
    """The number of the cut, its voucher as packing it now would give, and its latest change."""
    os.chdir(job.source)
    with columns(job.made) as listed:
        names = listed.name_list(cut.begin, cut.end)

    def facts(name: bytes) -> tuple[int, ...]:
        try:
            found: tuple[int, ...] = FACTS(os.stat(name, follow_symlinks=job.follow_links))
        except OSError as problem:
            raise unreadable(os.fsdecode(os.path.join(job.source, name)), problem) from problem
        return found

    rows = at_once(facts, names)
    voucher = hashlib.sha256(hashlib.sha256(numbers(rows)).digest() + b"".join(names))
    if cut.last:
        voucher.update(job.end)
    yield cut.number, voucher.hexdigest(), max(row[4] for row in rows)


def take_over(job: Job, cut: Cut, kept: Kept, known: tuple[str, int]) -> Iterator[Packed | Written]:
    """Put the shards that hold this cut already, and their records, into the pack being made."""
    with columns(job.made) as listed:
        names = listed.name_list(cut.begin, cut.end)
        at = listed.start(cut.begin)
    shards, done, size = [], 0, 0
    for part, (shard, (path, begin, end)) in enumerate(
        zip(kept.shards, kept.records, strict=True)
    ):  # fmt: skip
        with open(path, "rb") as stream:
            stream.seek(begin)
            old = stream.read(end - begin)
        here = names[done : done + len(old) // RECORD.size]
        records = _renewed(old, here, at, job.classes)
        with open(_path(job, records_name(cut.number, part)), "wb") as stream:
            stream.write(records)
        _link(os.path.join(kept.folder, shard.name), _path(job, part_name(cut.number, part)))
        shards.append(Shard(part_name(cut.number, part), *shard[1:]))
        done += len(here)
        at += sum(map(len, here))
        size += sum(record[1] for record in RECORD.iter_unpack(old))
    yield Packed(done, size)
    yield Written(cut.number, shards, *known)


def _renewed(old: bytes, names: list[bytes], at: int, classes: dict[bytes, int]) -> bytes:
    """The records with the places of names, and the classes, that they have now."""
    records = []
    for name, record in zip(names, RECORD.iter_unpack(old), strict=True):
        first, inside, _ = name.partition(b"/")
        label = classes[first] if inside else NO_CLASS
        records.append(RECORD.pack(*record[:3], at, *record[4:10], label, 0))
        at += len(name)
    return b"".join(records)


def _path(job: Job, name: str) -> str:
    return os.path.join(job.made.folder, name)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copyfile(source, target)
