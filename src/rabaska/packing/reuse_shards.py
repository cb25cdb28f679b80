"""Shards that are as they were: found by asking every file for its times, and linked, not read."""

import hashlib
import os
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rabaska.node.data import tar_headers
from rabaska.node.data.pack_format import NO_CLASS, RECORD, Shard
from rabaska.packing.compiled import stats
from rabaska.packing.listing import unreadable
from rabaska.packing.listing_file import Columns, columns
from rabaska.packing.pack_cache import CachedShard, is_good
from rabaska.packing.read_files import Clock, at_once
from rabaska.packing.shard_borders import ShardRange, is_one_shard, parts_of
from rabaska.packing.tar_batches import CHANGED, FACTS, SIZE, numbers
from rabaska.packing.write_shards import (
    Packed,
    ShardPart,
    ShardTask,
    Written,
    fingerprint_of,
    part_name,
    records_name,
    write_cut,
)

_NUMBERS = 5  # about each file
_FIRST, _MANY = 16, 1024  # files asked before looking at the clock


class ShardPlan(NamedTuple):
    """What will be one shard, as its files are now."""

    cut: ShardRange
    fingerprint: str
    newest: int  # ns: the latest change of any of its files


def plan_shards(job: ShardTask, cut: ShardRange) -> Iterator[ShardPlan]:
    """The shards that a cut becomes, each with the fingerprint that packing it now would give."""
    os.chdir(job.source)
    end = job.end if cut.last else b""
    with columns(job.draft) as listed:
        facts, lengths = _facts(job, cut, listed)
        whole = (0, cut.end - cut.begin)
        pairs = [whole]
        if not is_one_shard(lengths, job.size, len(end)):
            names = listed.name_list(cut.begin, cut.end)
            pairs = parts_of(names, lengths, job.size, len(end))
        for begin, stop in pairs:
            last = (begin, stop) == pairs[-1]
            first, after = listed.start(cut.begin + begin), listed.start(cut.begin + stop)
            fingerprint = fingerprint_of(
                hashlib.sha256(facts[begin * _NUMBERS : stop * _NUMBERS]).digest(),
                hashlib.sha256(listed.names[first:after]).digest(),
                end if last else b"",
            )
            changed = facts[begin * _NUMBERS + CHANGED : stop * _NUMBERS : _NUMBERS]
            part = ShardRange(cut.number, cut.begin + begin, cut.begin + stop, cut.last and last)
            yield ShardPlan(part, fingerprint, max(changed, default=0))


def _facts(
    job: ShardTask, cut: ShardRange, listed: Columns
) -> tuple["array[int]", "Sequence[int]"]:
    """What the files of a cut are now, and how many bytes of tar each takes."""
    if stats is not None:
        begun, done, found = Clock(), 0, []
        while done < cut.end - cut.begin:
            count = min(_FIRST if not done else _MANY, cut.end - cut.begin - done)
            place = cut.begin + done
            some = stats(
                listed.names, listed.ends, place, listed.start(place), count, job.follow_links
            )
            if some is None or 0 in some[1] or begun.waited(done + count):
                break
            found.append(some)
            done += count
        else:
            facts, lengths = array("q"), array("q")
            for some_facts, some_lengths in found:
                facts += some_facts
                lengths += some_lengths
            return facts, lengths
    names = listed.name_list(cut.begin, cut.end)

    def row(name: bytes) -> tuple[int, ...]:
        try:
            facts: tuple[int, ...] = FACTS(os.stat(name, follow_symlinks=job.follow_links))
        except OSError as problem:
            raise unreadable(os.fsdecode(os.path.join(job.source, name)), problem) from problem
        return facts

    rows = at_once(row, names)
    sizes = (facts[SIZE] for facts in rows)
    return numbers(rows), list(map(tar_headers.length, names, sizes))


def take_over(job: ShardTask, plan: ShardPlan, kept: CachedShard) -> Iterator[Packed | Written]:
    """Put a shard that is there already, and its records, into the pack being made.

    One that was damaged since is written anew.
    """
    cut = plan.cut
    if not is_good(kept):
        yield from write_cut(job, cut)
        return
    with columns(job.draft) as listed:
        names = listed.name_list(cut.begin, cut.end)
        at = listed.start(cut.begin)
    path, first, last = kept.records
    with open(path, "rb") as stream:
        stream.seek(first)
        old = stream.read(last - first)
    with open(_path(job, records_name(cut.number, 0)), "wb") as stream:
        stream.write(_renewed(old, names, at, job.classes))
    name = part_name(cut.number, 0)
    _link(os.path.join(kept.folder, kept.shard.name), _path(job, name))
    yield Packed(len(names), sum(record[1] for record in RECORD.iter_unpack(old)))
    shard = Shard(name, *kept.shard[1:])
    yield Written(cut.number, [ShardPart(shard, plan.fingerprint, plan.newest)])


def _renewed(old: bytes, names: list[bytes], at: int, classes: dict[bytes, int]) -> bytes:
    """The records with the places of names, and the classes, that they have now."""
    records = []
    for name, record in zip(names, RECORD.iter_unpack(old), strict=True):
        first, inside, _ = name.partition(b"/")
        label = classes[first] if inside else NO_CLASS
        records.append(RECORD.pack(*record[:3], at, *record[4:10], label, 0))
        at += len(name)
    return b"".join(records)


def _path(job: ShardTask, name: str) -> str:
    return os.path.join(job.draft.folder, name)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        import shutil  # only here: it brings every compressor along

        shutil.copyfile(source, target)
