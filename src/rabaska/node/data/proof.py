"""What is known of the shards in a folder that a program reads: proven, or damaged.

`proven` in the folder has a byte for each shard: 1 once all of it was read on this node and
compared with the manifest. Who reads samples of another shard compares each of them with the index.
`damaged` says what is wrong with the pack; the job ends with it.
"""

import os
from typing import Optional

from .. import files
from .blocks import is_as_made
from .packs import Manifest

PROVEN = "proven"
DAMAGED = "damaged"


def begin(folder: str, manifest: Manifest, *, proven: bool = False) -> None:
    """Write down that all shards are proven, or none."""
    content = (b"\1" if proven else b"\0") * len(manifest.shards)
    path = os.path.join(folder, PROVEN)
    if not os.path.exists(path):
        files.write_whole(path, content)
        return
    with open(path, "r+b", buffering=0) as stream:  # others may look into the same memory
        stream.write(content)


def mark(folder: str, number: int) -> None:
    """Shard `number` is proven from now on."""
    with open(os.path.join(folder, PROVEN), "r+b", buffering=0) as stream:
        stream.seek(number)
        stream.write(b"\1")


def note_damage(folder: str, why: str) -> None:
    """Leave word for the agent, if the folder is one that was staged.

    Without room on the disk, who found it can still raise it.
    """
    if not os.path.exists(os.path.join(folder, PROVEN)):
        return
    try:
        files.write_whole(os.path.join(folder, DAMAGED), why.encode("utf-8", "replace"))
    except OSError:
        pass


def damage(folder: str) -> Optional[str]:
    """What is wrong with the pack, if anybody found out."""
    try:
        with open(os.path.join(folder, DAMAGED), "rb") as stream:
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return None


def prove(folder: str, manifest: Manifest) -> None:
    """Read all shards in the folder, and write down which are what they should be."""
    for number, shard in enumerate(manifest.shards):
        if not os.path.exists(os.path.join(folder, shard.name)):
            continue  # it has not arrived
        if not is_as_made(folder, shard):
            note_damage(folder, "{} is damaged".format(os.path.join(folder, shard.name)))
            return
        mark(folder, number)
