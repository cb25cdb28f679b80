"""Pack: a folder becomes tar shards with an index and a manifest, named by what they hold."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from rabaska.errors import DatasetError
from rabaska.node import files, partial_folder
from rabaska.node.data import pack_format
from rabaska.node.data.blocks import is_as_made
from rabaska.node.data.worker_pool import WorkerLost, available, share
from rabaska.node.partial_folder import PartialFolder
from rabaska.packing import pack_cache, reuse_shards
from rabaska.packing.digests import digests
from rabaska.packing.listing import Listing, unreadable
from rabaska.packing.listing_file import Columns, columns, draft, tail
from rabaska.packing.pack_cache import CachedPack, PackCache, whole
from rabaska.packing.pack_index import describe
from rabaska.packing.read_files import at_once
from rabaska.packing.refusals import refuse_name, refuse_unfit, space_needed
from rabaska.packing.reuse_shards import Vouched
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
from rabaska.packing.shards_in_turn import in_turn, side_by_side
from rabaska.packing.tar_headers import BLOCK, padding
from rabaska.packing.write_shards import Packed, ShardTask, Written, write_cut

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


def pack(source: Path, store: Path, wish: PackOptions) -> Pack:
    """Pack `source` into `<store>/<name>-<digest>`, unless it is there as it is now.

    The same content gives the same pack, byte for byte, however many workers make it.
    """
    source, store = source.absolute(), store.absolute()
    refuse_name(wish.name)
    refuse_unfit(source, store)
    with space_needed(store, f"pack {source}"):
        store.mkdir(parents=True, exist_ok=True)
        remains = partial_folder.adopt(str(store), wish.name)
        partial_folder.sweep(str(store), spare=pack_cache.notes)
        folder = partial_folder.begin(str(store), wish.name)
        try:
            made = _pack_in(folder, source, wish, remains)
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
        return made


def _pack_in(
    folder: PartialFolder, source: Path, wish: PackOptions, remains: list[PartialFolder]
) -> Pack:
    store = Path(folder.path).parent
    begun = time.time_ns()
    listing = Listing(os.fsencode(source), follow_links=wish.follow_links)
    made = draft(listing, folder.path)
    if not made.layout.files:
        raise DatasetError(
            f"the dataset in {source} is empty",
            why="there is no file in it",
            hint="check the path under [data] in rabaska.toml",
        )
    end, records = tail(made)
    with columns(made) as listed:
        found = samples_among(listed.all_names()) if wish.samples else None
        load = _load(listed, source)
        total = load.bytes_before(made.layout.files)
        size = wish.shard_size or target_size(total)
        parts = _cuts(listed, load, size)
    job = ShardTask(os.fsencode(source), made, made.classes, end, size, begun, wish.follow_links)
    how = (wish.known_as or str(source), wish.name, wish.follow_links, wish.shard_size)
    remembered = PackCache(store, how)
    known = remembered.recall()
    kept = dict(known.kept) if known else {}
    for rest in remains:
        kept.update(pack_cache.left_behind(rest.path))
    vouched = _vouched(job, parts, wish) if kept else []
    same = known is not None and [part.voucher for part in vouched] == known.vouchers
    if known and same and known.untouched:
        partial_folder.abandon(folder)
        return replace(_described(known.manifest, store, found, reused=True), new=False)
    parts = [part.cut for part in vouched] or parts
    stripes = _spread(folder.path, size)
    written = _write_shards(job, parts, _Plan(wish, total, kept, vouched))
    manifest = describe(made, wish.name, written, records)
    placed = put_in_place(folder, manifest)
    remembered.keep(written, manifest, begun)
    described = _described(manifest, store, found, reused=False)
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


def _vouched(job: ShardTask, parts: list[ShardRange], wish: PackOptions) -> list[Vouched]:
    """What will be shards, in order and numbered, with what vouches for them now."""
    found = sorted(
        share(lambda part: reuse_shards.vouch(job, part), parts, wish.workers), key=_place
    )
    return [
        part._replace(cut=part.cut._replace(number=number)) for number, part in enumerate(found)
    ]


def _place(part: Vouched) -> tuple[int, int]:
    return part.cut.begin, part.cut.end


def _described(
    manifest: pack_format.Manifest, store: Path, found: Samples | None, *, reused: bool
) -> Pack:
    return Pack(
        manifest.identity,
        store / manifest.identity,
        manifest.files,
        manifest.bytes,
        len(manifest.shards),
        reused,
        found,
    )


class _Plan(NamedTuple):
    wish: PackOptions
    total: int  # bytes, about
    kept: dict[str, CachedPack]
    vouched: list[Vouched]  # by the number of their cuts, if anything is kept

    def kept_for(self, cut: ShardRange) -> CachedPack | None:
        return self.kept.get(self.vouched[cut.number].voucher) if self.vouched else None


def _write(job: ShardTask, cuts: Sequence[ShardRange], plan: _Plan) -> Iterator[Packed | Written]:
    """Write the shards of these cuts in turn, or take over what was made of them before."""
    begin = digests()
    writers = []
    for cut in cuts:
        kept = plan.kept_for(cut)
        if kept is None:
            writers.append(write_cut(job, cut, begin))
        else:
            writers.append(reuse_shards.take_over(job, plan.vouched[cut.number], kept, begin))
    return in_turn(writers)


def _write_shards(job: ShardTask, parts: list[ShardRange], plan: _Plan) -> list[Written]:
    written: dict[int, Written] = {}
    done_files = done_bytes = 0
    total_files = job.made.layout.files
    # The largest first, so that in the end all workers are done at about the same time.
    tasks = sorted(parts, key=lambda cut: cut.begin - cut.end)
    groups = side_by_side(tasks, plan.wish.workers)
    for word in share(lambda cuts: _write(job, cuts, plan), groups, plan.wish.workers):
        if isinstance(word, Packed):
            done_files, done_bytes = done_files + word.files, done_bytes + word.bytes
            total = done_bytes if done_files == total_files else max(plan.total, done_bytes)
            plan.wish.progress(Progress(done_files, done_bytes, total_files, total))
        else:
            # Here and not in the worker, which can go on meanwhile.
            for part in word.parts:
                files.sync_file(os.path.join(job.made.folder, part.shard.name))
            pack_cache.note(job.made.folder, word, job.begun)
            written[word.number] = word
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
        whole(target) is None
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
        why=f"{problem} from outside, perhaps for want of memory",
        hint="run the command again",
    )
