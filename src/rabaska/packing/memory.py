"""What was packed from where, so that a folder nobody touched is not read again."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from rabaska.node import files, packs
from rabaska.node.inspection import refuse_wrong_sizes
from rabaska.packing.draft import Draft

_FOLDER = ".listings"
# File systems count time in steps of up to two seconds. A file changed within such a step before
# it was read could change again without its time showing it.
_STEP = 2 * 10**9


@dataclass(frozen=True)
class Memory:
    """The memory of one folder, packed in one way."""

    store: Path
    key: tuple[str | int | bool | None, ...]

    def recall(self, fingerprint: str) -> packs.Manifest | None:
        """The pack made from exactly this listing, if it is still there and whole."""
        try:
            known = files.read_json(str(self._path))
        except ValueError:  # a memory that cannot be read is no memory
            return None
        if known is None or known.get("listing") != fingerprint:
            return None
        return whole(self.store / str(known.get("pack")))

    def keep(self, made: Draft, identity: str, begun: int) -> None:
        """Remember what was packed, unless the listing cannot vouch for it."""
        if made.newest + _STEP > begun:
            return
        self._path.parent.mkdir(exist_ok=True)
        files.write_json(str(self._path), {"listing": made.fingerprint, "pack": identity})

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
