"""What was packed from where, so that what nobody touched is not read again, shard by shard."""

import hashlib
import json
import os
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rabaska.node import files
from rabaska.node.data import packs
from rabaska.node.data.packs import HEADER, RECORD, Index, Shard
from rabaska.node.data.sealed import refuse_wrong_sizes
from rabaska.packing.shards import Written, part_name, records_name

_FOLDER = ".listings"
_NOTE = "done-"
# File systems count time in steps of up to two seconds. A file changed within such a step before
# it was read could change again without its time showing it.
_STEP = 2 * 10**9


class Kept(NamedTuple):
    """Shards that hold a cut already: files of `folder`, and where their index records are."""

    folder: str
    shards: list[Shard]
    records: list[tuple[str, int, int]]  # for each shard: file, begin, end


class Recalled(NamedTuple):
    manifest: packs.Manifest
    vouchers: list[str]  # of each cut; "" for one that its times could not vouch for
    kept: dict[str, Kept]


@dataclass(frozen=True)
class Memory:
    """The memory of one dataset, packed in one way."""

    store: Path
    key: tuple[str | int | bool | None, ...]

    def recall(self) -> Recalled | None:
        """The last pack made of it and what its shards hold, if it is still there and whole."""
        try:
            known = files.read_json(str(self._path))
            manifest = whole(self.store / str(known["pack"])) if known else None
            if known is None or manifest is None:
                return None
            vouchers = [voucher for voucher, _, _ in known["cuts"]]
            folder = self.store / manifest.identity
            return Recalled(manifest, vouchers, _kept(folder, manifest, known["cuts"]))
        except (ValueError, KeyError, TypeError):  # a memory that cannot be read is no memory
            return None

    def keep(self, written: Sequence[Written], identity: str, begun: int) -> None:
        """Remember what was packed, but for what its times cannot vouch for."""
        cuts, first = [], 0
        for cut in written:
            voucher = cut.voucher if cut.newest + _STEP <= begun else ""
            cuts.append([voucher, first, len(cut.shards)])
            first += len(cut.shards)
        if not any(voucher for voucher, _, _ in cuts):
            return
        self._path.parent.mkdir(exist_ok=True)
        files.write_json(str(self._path), {"pack": identity, "cuts": cuts})

    @property
    def _path(self) -> Path:
        text = json.dumps([packs.FORMAT, *self.key])
        return self.store / _FOLDER / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def whole(folder: Path) -> packs.Manifest | None:
    """The manifest of the pack in `folder`, or None if anything of it is missing."""
    try:
        manifest = packs.load_manifest(os.fspath(folder))
        refuse_wrong_sizes(os.fspath(folder), manifest)
    except (packs.DamagedPack, OSError):
        return None
    return manifest if manifest.identity == folder.name else None


def _kept(
    folder: Path, manifest: packs.Manifest, cuts: Iterable[tuple[str, int, int]]
) -> dict[str, Kept]:
    path = os.path.join(folder, packs.INDEX)
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
        voucher: Kept(
            str(folder),
            manifest.shards[first : first + count],
            [(path, places[n], places[n + 1]) for n in range(first, first + count)],
        )
        for voucher, first, count in cuts
        if voucher
    }


def note(folder: str, written: Written, begun: int) -> None:
    """Leave word in a pack being made that one cut of it is done."""
    if written.newest + _STEP > begun:
        return
    value = {"voucher": written.voucher, "shards": [list(shard) for shard in written.shards]}
    path = os.path.join(folder, f"{_NOTE}{written.number:05d}.json")
    with open(f"{path}.new", "w", encoding="ascii") as stream:
        json.dump({**value, "cut": written.number}, stream)
    os.replace(f"{path}.new", path)


def notes(folder: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(_NOTE)]


def left_behind(folder: str) -> dict[str, Kept]:
    """What a packer that was killed had finished in `folder`."""
    found = {}
    for name in notes(folder):
        try:
            value = files.read_json(os.path.join(folder, name)) or {}
            shards = [Shard(*shard) for shard in value["shards"]]
            kept = Kept(folder, shards, [
                _records(folder, value["cut"], part) for part in range(len(shards))
            ])  # fmt: skip
        except (ValueError, KeyError, TypeError, OSError):
            continue
        sizes = [
            os.path.getsize(os.path.join(folder, part_name(value["cut"], part)))
            for part in range(len(shards))
        ]
        if sizes == [shard.size for shard in shards]:
            found[str(value["voucher"])] = kept
    return found


def _records(folder: str, cut: int, part: int) -> tuple[str, int, int]:
    path = os.path.join(folder, records_name(cut, part))
    return path, 0, os.path.getsize(path)
