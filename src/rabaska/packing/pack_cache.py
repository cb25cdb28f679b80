"""What was packed from where, so that what nobody touched is not read again, shard by shard."""

import hashlib
import json
import os
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rabaska.node import files
from rabaska.node.data import pack_format
from rabaska.node.data.pack_format import HEADER, RECORD, Index, Shard
from rabaska.node.data.pack_proof import is_as_made, refuse_wrong_sizes
from rabaska.packing.write_shards import ShardPart, Written, part_name, records_name

_FOLDER = ".listings"
_NOTE = "done-"
# File systems count time in steps of up to two seconds. A file changed within such a step before
# it was read could change again without its time showing it.
_STEP = 2 * 10**9
_TICK = 0.02  # seconds; the systems that count no whole seconds count steps shorter than that

_Facts = list[int]  # about a shard: they change when anybody writes to it


class CachedShard(NamedTuple):
    """A shard that is there already: a file of `folder`, and where its index records are."""

    folder: str
    shard: Shard
    records: tuple[str, int, int]  # file, begin, end
    facts: _Facts | None = None  # as they were when it was known to be good


class LastPack(NamedTuple):
    manifest: pack_format.Manifest
    fingerprints: list[str]  # of each shard; "" where files were too new
    kept: dict[str, CachedShard]

    @property
    def untouched(self) -> bool:
        """Whether nobody wrote to the pack since it was made."""
        return len(self.kept) == len(self.fingerprints) and all(map(_is_known, self.kept.values()))


@dataclass(frozen=True)
class PackCache:
    """The record of one dataset, packed in one way."""

    store: Path
    key: tuple[str | int | bool | None, ...]

    def last_pack(self) -> LastPack | None:
        """The last pack made of it and what its shards hold, if it is still there and complete."""
        try:
            record = files.read_json(str(self._path))
            manifest = complete_manifest(self.store / str(record["pack"])) if record else None
            if record is None or manifest is None:
                return None
            kept = _kept(self.store / manifest.identity, manifest, record["shards"])
            return LastPack(manifest, [fingerprint for fingerprint, _ in record["shards"]], kept)
        except (ValueError, KeyError, TypeError, IndexError):
            return None  # a record that cannot be read is no record

    def keep(self, written: Sequence[Written], manifest: pack_format.Manifest, begun: int) -> None:
        """Remember what was packed, but for files too new for their times to prove anything."""
        parts = [part for cut in written for part in cut.parts]
        if not any(_is_old(part, begun) for part in parts):
            return
        folder = self.store / manifest.identity
        if not folder.is_dir():
            return  # cleaned away since
        facts = _facts_of([folder / shard.name for shard in manifest.shards])
        shards = [
            [part.fingerprint if _is_old(part, begun) else "", fact]
            for part, fact in zip(parts, facts, strict=True)
        ]
        self._path.parent.mkdir(exist_ok=True)
        files.write_json(str(self._path), {"pack": manifest.identity, "shards": shards})

    @property
    def _path(self) -> Path:
        text = json.dumps([pack_format.FORMAT, *self.key])
        return self.store / _FOLDER / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def complete_manifest(folder: Path) -> pack_format.Manifest | None:
    """The manifest of the pack in `folder`, or None if anything of it is missing."""
    try:
        manifest = pack_format.load_manifest(os.fspath(folder))
        refuse_wrong_sizes(os.fspath(folder), manifest)
    except (pack_format.BadPack, OSError):
        return None
    return manifest if manifest.identity == folder.name else None


def is_good(kept: CachedShard) -> bool:
    """Whether the shard is as it was made: nobody wrote to it since, or all of it was read."""
    return _is_known(kept) or is_as_made(kept.folder, kept.shard)


def _is_known(kept: CachedShard) -> bool:
    try:
        return kept.facts is not None and kept.facts == _facts(Path(kept.folder, kept.shard.name))
    except OSError:
        return False


def _facts(path: Path) -> _Facts:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _facts_of(paths: Sequence[Path]) -> list[_Facts | None]:
    """The facts about shards that are good now; None where the clock of the disk is too coarse.

    Whoever writes to one of them after this, changes its facts.
    """
    newest = max(path.stat().st_ctime_ns for path in paths)
    time.sleep(min(_TICK, max(0.0, newest / 1e9 + _TICK - time.time())))
    facts = [_facts(path) for path in paths]
    coarse = all(changed % 10**9 == 0 for _, _, changed, _ in facts)
    return [None] * len(facts) if coarse else list(facts)


def _is_old(part: ShardPart, begun: int) -> bool:
    return part.newest + _STEP <= begun


def _kept(
    folder: Path, manifest: pack_format.Manifest, shards: Sequence[tuple[str, _Facts | None]]
) -> dict[str, CachedShard]:
    path = os.path.join(folder, pack_format.INDEX)
    index = Index(path)
    try:
        every = range(index.layout.files)
        begins = [
            bisect_left(every, number, key=lambda place: index.record(place)[6])
            for number in range(len(manifest.shards) + 1)
        ]
    finally:
        index.close()
    places = [HEADER.size + begin * RECORD.size for begin in begins]
    return {
        fingerprint: CachedShard(
            str(folder), manifest.shards[n], (path, places[n], places[n + 1]), facts
        )
        for n, (fingerprint, facts) in enumerate(shards)
        if fingerprint
    }


def note(folder: str, written: Written, begun: int) -> None:
    """Record in a pack being made that one cut of it is done."""
    parts = [
        [part.fingerprint, list(part.shard)] if _is_old(part, begun) else ["", []]
        for part in written.parts
    ]
    path = os.path.join(folder, f"{_NOTE}{written.number:05d}.json")
    with open(f"{path}.new", "w", encoding="ascii") as stream:
        json.dump({"cut": written.number, "parts": parts}, stream)
    os.replace(f"{path}.new", path)


def notes(folder: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(_NOTE)]


def finished_shards(folder: str) -> dict[str, CachedShard]:
    """What a packer that was killed had finished in `folder`; who uses it reads it first."""
    shards = {}
    for name in notes(folder):
        try:
            value = files.read_json(os.path.join(folder, name)) or {}
            for part, (fingerprint, shard) in enumerate(value["parts"]):
                if fingerprint:
                    records = _records(folder, value["cut"], part)
                    named = Shard(*shard)._replace(name=part_name(value["cut"], part))
                    shards[str(fingerprint)] = CachedShard(folder, named, records)
        except (ValueError, KeyError, TypeError, OSError):
            continue
    return shards


def _records(folder: str, cut: int, part: int) -> tuple[str, int, int]:
    path = os.path.join(folder, records_name(cut, part))
    return path, 0, os.path.getsize(path)
