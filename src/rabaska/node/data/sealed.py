"""Whether a pack is whole: as long as its manifest says, and its index as it was made."""

import os
from typing import Tuple

from .packs import INDEX, DamagedPack, Index, Manifest, load_manifest, sha256_of


def open_manifest(folder: str) -> Manifest:
    """The manifest of a pack whose parts are all there, and as long as it says."""
    manifest = load_manifest(folder)
    refuse_wrong_sizes(folder, manifest)
    return manifest


def open_sealed(folder: str) -> Tuple[Manifest, Index]:
    """Both as they were made; what the index says was not looked at, so nothing may be written."""
    manifest = open_manifest(folder)
    path = os.path.join(folder, INDEX)
    if sha256_of(path) != manifest.index_sha256:
        raise DamagedPack("the index in {} was damaged".format(folder))
    return manifest, Index(path)


def refuse_wrong_sizes(folder: str, manifest: Manifest) -> None:
    # Sizes first: a transfer cut short is the common case, and this costs no reading.
    _refuse_wrong_size(os.path.join(folder, INDEX), manifest.index_size)
    for shard in manifest.shards:
        _refuse_wrong_size(os.path.join(folder, shard.name), shard.size)


def _refuse_wrong_size(path: str, size: int) -> None:
    try:
        found = os.stat(path).st_size
    except FileNotFoundError:
        raise DamagedPack("{} is missing".format(path))
    if found != size:
        raise DamagedPack("{} has {} bytes, not {}".format(path, found, size))
