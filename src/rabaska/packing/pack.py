"""Pack: a folder becomes tar shards with an index and a manifest, named by what they hold."""

import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rabaska.errors import DatasetError
from rabaska.node import files, packs, partial
from rabaska.node.partial import PartialFolder
from rabaska.node.workers import WorkerLost, available, share
from rabaska.packing.draft import NAMES, RECORDS, Cut, Draft, classes, cuts, draft, tail
from rabaska.packing.listing import listing
from rabaska.packing.memory import Memory, whole
from rabaska.packing.shards import Job, Packed, records_name, write_shard
from rabaska.packing.space import space_needed

_SMALLEST_SHARD = 16 * 2**20
_LARGEST_SHARD = 2**30
_SHARDS_WANTED = 64


@dataclass(frozen=True)
class Progress:
    files: int
    bytes: int
    total_files: int
    total_bytes: int


@dataclass(frozen=True)
class Pack:
    identity: str  # "<name>-<digest>"
    folder: Path
    files: int
    bytes: int
    shards: int
    reused: bool


@dataclass(frozen=True)
class _Order:
    """What was asked for."""

    source: Path
    store: Path
    name: str
    follow_links: bool
    shard_size: int | None
    workers: int
    tell: Callable[[Progress], None]


def pack(
    source: Path, store_packs: Path, name: str, *,
    follow_links: bool = False, shard_size: int | None = None, workers: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Pack:  # fmt: skip
    """Pack `source` into `<store_packs>/<name>-<digest>`, unless it is there as it is now.

    The same content gives the same pack, byte for byte; `workers` changes only how long it takes.
    """
    order = _Order(
        source.absolute(), store_packs.absolute(), name, follow_links, shard_size,
        workers or available(), progress or (lambda _: None),
    )  # fmt: skip
    _refuse_unfit(order)
    with space_needed(order.store, f"pack {source}"):
        order.store.mkdir(parents=True, exist_ok=True)
        partial.sweep(str(order.store))
        folder = partial.begin(str(order.store), name)
        try:
            return _pack_in(folder, order)
        except WorkerLost as problem:
            partial.abandon(folder)
            raise _interrupted(order, problem) from problem
        except BaseException:
            partial.abandon(folder)
            raise


def target_size(length: int) -> int:
    """How large shards should be for so many bytes: enough of them to share among workers."""
    return max(_SMALLEST_SHARD, min(_LARGEST_SHARD, length // _SHARDS_WANTED))


def _pack_in(folder: PartialFolder, order: _Order) -> Pack:
    begun = time.time_ns()
    made = draft(listing(os.fsencode(order.source), follow_links=order.follow_links), folder.path)
    if not made.layout.files:
        raise DatasetError(
            f"the dataset in {order.source} is empty",
            why="there is no file in it",
            hint="check the path under [data] in rabaska.toml",
        )
    how = (str(order.source), order.name, order.follow_links, order.shard_size)
    memory = Memory(order.store, how)
    known = memory.recall(made.fingerprint)
    if known:
        partial.abandon(folder)
        return _described(known, order, reused=True)
    manifest = _write(made, order)
    _put_in_place(folder, order.store / manifest.identity)
    memory.keep(made, manifest.identity, begun)
    return _described(manifest, order, reused=False)


def _described(manifest: packs.Manifest, order: _Order, *, reused: bool) -> Pack:
    return Pack(
        manifest.identity, order.store / manifest.identity, manifest.files, manifest.bytes,
        len(manifest.shards), reused,
    )  # fmt: skip


def _write(made: Draft, order: _Order) -> packs.Manifest:
    """Write everything that a pack holds, its manifest last."""
    wanted = -(-made.length // (order.shard_size or target_size(made.length)))
    parts = cuts(made, max(1, wanted))
    end, records = tail(made, len(parts) - 1)
    labels = {name: place for place, name in enumerate(classes(made.folders))}
    job = Job(os.fsencode(order.source), made, labels, end, len(parts), order.follow_links)
    shards = _write_shards(job, parts, order)
    size, sha256 = _write_index(made, len(parts), records)
    manifest = packs.Manifest(
        order.name, "", made.layout.files, made.bytes, size, sha256, shards
    )  # fmt: skip
    manifest = manifest._replace(digest=packs.digest_of(manifest))
    files.write_json(os.path.join(made.folder, packs.MANIFEST), packs.to_json(manifest))
    return manifest


def _write_shards(job: Job, parts: list[Cut], order: _Order) -> list[packs.Shard]:
    shards: dict[int, packs.Shard] = {}
    done_files = done_bytes = 0
    made = job.made
    for word in share(lambda part: write_shard(job, part), parts, order.workers):
        if isinstance(word, Packed):
            done_files, done_bytes = done_files + word.files, done_bytes + word.bytes
            order.tell(Progress(done_files, done_bytes, made.layout.files, made.bytes))
        else:
            shards[word[0]] = word[1]
    return [shards[number] for number in range(len(parts))]


def _write_index(made: Draft, shards: int, end: bytes) -> tuple[int, str]:
    """Join the records of all shards, those of links and folders, and the names."""
    path = os.path.join(made.folder, packs.INDEX)
    with open(path, "wb") as index:
        index.write(made.layout.header())
        for number in range(shards):
            _move(os.path.join(made.folder, records_name(number)), index)
        index.write(end)
        _move(os.path.join(made.folder, NAMES), index)
        index.flush()
        os.fsync(index.fileno())
        size = index.tell()
    os.unlink(os.path.join(made.folder, RECORDS))
    return size, packs.sha256_of(path)


def _move(part: str, whole_file: BinaryIO) -> None:
    with open(part, "rb") as stream:
        shutil.copyfileobj(stream, whole_file, 2**20)
    os.unlink(part)


def _put_in_place(folder: PartialFolder, target: Path) -> None:
    if target.exists() and whole(target) is None:
        # Somebody damaged it; ours is as good as new. The old one is swept next time.
        target.rename(target.with_name(partial.odd_name(target.name)))
    partial.finish(folder, str(target))


def _refuse_unfit(order: _Order) -> None:
    source = order.source
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", order.name):
        raise DatasetError(
            f"a dataset cannot be called {order.name!r}",
            why="its name becomes the name of a folder on clusters",
            hint="use letters, digits, `-`, `_` and `.`",
        )
    if not source.exists():
        raise DatasetError(
            f"there is no folder {source}",
            hint="check the path under [data] in rabaska.toml",
        )
    if not source.is_dir():
        raise DatasetError(
            f"{source} is not a folder",
            why="a dataset is a folder of files",
            hint="put the file into a folder of its own and name that under [data]",
        )
    if order.store.resolve().is_relative_to(source.resolve()):
        raise DatasetError(
            f"{source} cannot be packed into itself",
            why=f"packs are kept in {order.store}, inside it",
            hint="set RABASKA_HOME to a folder outside the dataset",
        )


def _interrupted(order: _Order, problem: WorkerLost) -> DatasetError:
    return DatasetError(
        f"packing {order.source} was interrupted",
        why=f"{problem} from outside, perhaps for want of memory",
        hint="run the command again",
    )
