"""Pack: a folder becomes tar shards with an index and a manifest, named by what they hold."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from rabaska.errors import DatasetError
from rabaska.node import files, partial_folder
from rabaska.node.data import pack_format
from rabaska.node.data.pack_proof import is_as_made
from rabaska.node.data.tar_headers import BLOCK, padding
from rabaska.node.data.worker_pool import WorkerLost, available, share
from rabaska.node.partial_folder import PartialFolder
from rabaska.packing import pack_cache, reuse_shards
from rabaska.packing.listing import Listing, unreadable
from rabaska.packing.listing_file import Columns, columns, tail, write_draft
from rabaska.packing.pack_cache import CachedShard, PackCache, complete_manifest
from rabaska.packing.pack_index import describe
from rabaska.packing.read_files import at_once
from rabaska.packing.refusals import refuse_name, refuse_unfit, space_needed
from rabaska.packing.reuse_shards import ShardPlan
from rabaska.packing.shard_borders import (
    Samples,
    ShardLoad,
    ShardRange,
    cuts,
    load_of,
    sampled,
    samples_among,
    stem,
    target_size,
)
from rabaska.packing.write_shards import Packed, ShardTask, Written, seldom, write_cut

_WORTH_SPREADING = 2**28  # bytes; smaller shards are quick from one server


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
    reused: bool  # whether its files were not even read again
    samples: Samples | None = None  # if asked for
    stripes: int | None = None  # on Lustre: over how many servers each shard is spread
    new: bool = True  # whether no pack of the same content was there
    damaged: bool = False  # whether the one that was there was damaged, so this one replaced it


@dataclass(frozen=True)
class PackOptions:
    """How a dataset is to be packed, whatever it is."""

    name: str
    follow_links: bool = False
    shard_size: int | None = None  # bytes; None: as suits the whole
    samples: bool = False  # files of one stem must follow one another, and are counted
    known_as: str = ""  # what it is remembered as, if it is found in another place each time
    workers: int = field(default_factory=available)
    progress: Callable[[Progress], None] = lambda _: None
    # Who packs several datasets remembers them all at the end: the disk's clock has to tick once.
    afterwards: Callable[[Callable[[], None]], None] = lambda remember: remember()


def pack(source: Path, store: Path, options: PackOptions) -> Pack:
    """Pack `source` into `<store>/<name>-<digest>`, unless it is there as it is now.

    The same content gives the same pack, byte for byte, however many workers make it.
    """
    source, store = source.absolute(), store.absolute()
    refuse_name(options.name)
    refuse_unfit(source, store)
    with space_needed(store, f"pack {source}"):
        store.mkdir(parents=True, exist_ok=True)
        remains = partial_folder.adopt(str(store), options.name)
        partial_folder.sweep(str(store), spare=pack_cache.notes)
        folder = partial_folder.begin(str(store), options.name)
        try:
            packed = _pack_in(folder, source, options, remains)
        except WorkerLost as problem:
            partial_folder.abandon(folder)
            raise _interrupted(source, problem) from problem
        except KeyboardInterrupt:
            # What is done is kept for the next attempt.
            (partial_folder.release if pack_cache.notes(folder.path) else partial_folder.abandon)(
                folder
            )
            raise
        except BaseException:
            partial_folder.abandon(folder)
            raise
        for rest in remains:
            partial_folder.abandon(rest)
        return packed


def _pack_in(
    folder: PartialFolder, source: Path, options: PackOptions, remains: list[PartialFolder]
) -> Pack:
    store = Path(folder.path).parent
    begun = time.time_ns()
    listing = Listing(os.fsencode(source), follow_links=options.follow_links)
    draft = write_draft(listing, folder.path)
    if not draft.layout.files:
        raise DatasetError(
            f"the dataset in {source} is empty",
            why="it contains no files",
            hint="check the path under [data] in rabaska.toml",
        )
    end, records = tail(draft)
    with columns(draft) as listed:
        samples = samples_among(listed.all_names()) if options.samples else None
        load = _load(listed, source)
        total = load.bytes_before(draft.layout.files)
        size = options.shard_size or target_size(total)
        parts = _cuts(listed, load, size)
    job = ShardTask(
        os.fsencode(source), draft, draft.classes, end, size, begun, options.follow_links
    )
    key = (options.known_as or str(source), options.name, options.follow_links, options.shard_size)
    cache = PackCache(store, key)
    last = cache.last_pack()
    kept = dict(last.kept) if last else {}
    for rest in remains:
        kept.update(pack_cache.finished_shards(rest.path))
    plans = _plan_shards(job, parts, options) if kept else []
    same = last is not None and [part.fingerprint for part in plans] == last.fingerprints
    if last and same and last.untouched:
        partial_folder.abandon(folder)
        return replace(_pack_of(last.manifest, store, samples, reused=True), new=False)
    parts = [part.cut for part in plans] or parts
    stripes = _spread(folder.path, size)
    written = _write_shards(job, parts, _Plan(options, total, kept, plans))
    manifest = describe(draft, options.name, written, records)
    placed = put_in_place(folder, manifest)
    options.afterwards(lambda: cache.keep(written, manifest, begun))
    described = _pack_of(manifest, store, samples, reused=False)
    return replace(described, stripes=stripes if placed.new else None, **placed._asdict())


def _spread(folder: str, size: int) -> int | None:
    """On Lustre, over how many servers each of the shards that come into `folder` is spread."""
    if size < _WORTH_SPREADING:
        return None
    from rabaska.node.data.free_space import prepare_stripes  # takes long to import

    return prepare_stripes(folder, size)


def _load(listed: Columns, source: Path) -> ShardLoad:
    """About how many bytes lie before each file, from the sizes of some."""
    places = sampled(listed.hashes)
    folder = os.fsencode(source)

    def weight(place: int) -> int:
        path = os.path.join(folder, listed.name(place))
        try:
            size = os.stat(path).st_size
        except OSError as problem:
            raise unreadable(os.fsdecode(path), problem) from problem
        return BLOCK + size + padding(size)

    return load_of(places, at_once(weight, places))


def _cuts(listed: Columns, load: ShardLoad, size: int) -> list[ShardRange]:
    def together(place: int) -> bool:
        return stem(listed.name(place - 1)) == stem(listed.name(place))

    return cuts(listed.hashes, load, size, together=together)


def _plan_shards(job: ShardTask, parts: list[ShardRange], options: PackOptions) -> list[ShardPlan]:
    """What will be shards, in order and numbered, with their fingerprints as they are now."""
    plans = sorted(
        share(lambda part: reuse_shards.plan_shards(job, part), parts, options.workers), key=_place
    )
    return [
        plan._replace(cut=plan.cut._replace(number=number)) for number, plan in enumerate(plans)
    ]


def _place(plan: ShardPlan) -> tuple[int, int]:
    return plan.cut.begin, plan.cut.end


def _pack_of(
    manifest: pack_format.Manifest, store: Path, samples: Samples | None, *, reused: bool
) -> Pack:
    return Pack(
        manifest.identity,
        store / manifest.identity,
        manifest.files,
        manifest.bytes,
        len(manifest.shards),
        reused,
        samples,
    )


class _Plan(NamedTuple):
    options: PackOptions
    total: int  # bytes, about
    kept: dict[str, CachedShard]
    plans: list[ShardPlan]  # by the number of their cuts, if anything is kept

    def kept_for(self, cut: ShardRange) -> CachedShard | None:
        return self.kept.get(self.plans[cut.number].fingerprint) if self.plans else None


def _write(job: ShardTask, cut: ShardRange, plan: _Plan) -> Iterator[Packed | Written]:
    """Write the shards of a cut, or take over what was made of it before."""
    kept = plan.kept_for(cut)
    if kept is None:
        return seldom(write_cut(job, cut))
    return seldom(reuse_shards.take_over(job, plan.plans[cut.number], kept))


def _write_shards(job: ShardTask, parts: list[ShardRange], plan: _Plan) -> list[Written]:
    written: dict[int, Written] = {}
    done_files = done_bytes = 0
    total_files = job.draft.layout.files
    # The largest first, so that in the end all workers are done at about the same time.
    tasks = sorted(parts, key=lambda cut: cut.begin - cut.end)
    for event in share(lambda cut: _write(job, cut, plan), tasks, plan.options.workers):
        if isinstance(event, Packed):
            done_files, done_bytes = done_files + event.files, done_bytes + event.bytes
            total = done_bytes if done_files == total_files else max(plan.total, done_bytes)
            plan.options.progress(Progress(done_files, done_bytes, total_files, total))
        else:
            # Here and not in the worker, which can go on meanwhile.
            for part in event.parts:
                files.sync_file(os.path.join(job.draft.folder, part.shard.name))
            pack_cache.note(job.draft.folder, event, job.begun)
            written[event.number] = event
    return [written[cut.number] for cut in parts]


class Placed(NamedTuple):
    """What came of giving a pack its name."""

    new: bool  # else it was there already, and good
    damaged: bool  # whether a damaged one was in its place


def put_in_place(folder: PartialFolder, manifest: pack_format.Manifest) -> Placed:
    target = Path(folder.path).with_name(manifest.identity)
    damaged = target.exists() and not _is_good(target, folder, manifest)
    if not damaged:
        return Placed(partial_folder.finish(folder, str(target)), damaged=False)
    # Somebody damaged it; ours is as good as new.
    aside = target.rename(target.with_name(partial_folder.temporary_name(target.name)))
    new = partial_folder.finish(folder, str(target))
    with suppress(OSError):  # then it is swept next time
        partial_folder.remove_tree(str(aside))
    return Placed(new, damaged)


def _is_good(target: Path, ours: PartialFolder, manifest: pack_format.Manifest) -> bool:
    """Whether a pack of the same name holds the same, byte for byte; shards that we linked do."""
    if (
        complete_manifest(target) is None
        or pack_format.sha256_of(str(target / pack_format.INDEX)) != manifest.index_sha256
    ):
        return False
    return all(
        (target / shard.name).samefile(Path(ours.path, shard.name))
        or is_as_made(str(target), shard)
        for shard in manifest.shards
    )


def _interrupted(source: Path, problem: WorkerLost) -> DatasetError:
    return DatasetError(
        f"packing {source} was interrupted",
        why=f"{problem} by another process, perhaps because memory ran out",
        hint="run the command again",
    )
