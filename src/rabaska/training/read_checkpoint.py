"""The newest whole checkpoint, read and proven in one pass; damaged ones are set aside."""

import json
import mmap
import os
import zlib
from typing import Any, Callable, Dict, NamedTuple, Optional

from rabaska.node import partial_folder
from rabaska.node.checkpoints import commit

from . import lazy_imports, sharded_state, state_tree, tensor_file
from .checkpoint_writer import STATE, TENSORS

Say = Callable[[str], None]


class ReadCheckpoint(NamedTuple):
    step: int
    path: str
    state: Any  # as it was saved
    sharded: Dict[str, Any]  # tensors of the state that are empty yet, see `sharded.read`


class DamagedCheckpoint(Exception):
    """A checkpoint is not what its manifest says."""


def newest(parent: str, say: Say, mesh: Any = None) -> Optional[ReadCheckpoint]:
    """The checkpoint to continue from; what killed writers left half made is removed.

    `mesh` are the processes over which sharded tensors are spread, if there are any.
    """
    if os.path.isdir(parent):
        partial_folder.sweep(parent)
    for checkpoint in commit.newest_first(parent):
        try:
            return read(checkpoint.path, mesh)
        except DamagedCheckpoint as why:
            commit.set_aside(checkpoint.path)
            say("{} is damaged and set aside: {}".format(os.path.basename(checkpoint.path), why))
    return None


def read(folder: str, mesh: Any = None) -> ReadCheckpoint:
    # What other ranks wrote is proven here too, before anybody relies on it.
    why = commit.check(folder, deep=mesh is not None)
    manifest = commit.manifest_of(folder)
    if why is not None or manifest is None:
        raise DamagedCheckpoint(why)
    parts = {part.name: part for part in commit.parts_of(manifest)}
    if TENSORS not in parts or STATE not in parts:
        raise DamagedCheckpoint("it lacks {} or {}".format(TENSORS, STATE))
    piece = int(manifest["piece"])
    tensors = _tensors(_content(folder, parts[TENSORS], piece))
    state = json.loads(bytes(_content(folder, parts[STATE], piece)).decode("utf-8"))
    empty: Dict[str, Any] = {}

    def tensor(entry: Any) -> Any:
        if isinstance(entry, str):
            return tensors[entry]
        return empty.setdefault(entry[0], sharded_state.like(entry, mesh))

    return ReadCheckpoint(int(manifest["step"]), folder, state_tree.decode(state, tensor), empty)


def _content(folder: str, part: commit.CheckpointPart, piece: int) -> memoryview:
    """A file in memory, every piece of it compared with its checksum."""
    area = mmap.mmap(-1, max(1, part.size), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    view = memoryview(area)[: part.size]
    with open(os.path.join(folder, part.name), "rb", buffering=0) as stream:
        for number, place in enumerate(range(0, part.size, piece)):
            chunk = view[place : place + piece]
            filled = 0
            while filled < len(chunk):
                count = stream.readinto(chunk[filled:])
                if not count:
                    raise DamagedCheckpoint("{} is cut short".format(part.name))
                filled += count
            if number >= len(part.sums) or zlib.crc32(chunk) != part.sums[number]:
                raise DamagedCheckpoint("{} has changed since it was written".format(part.name))
    return view


def _tensors(content: memoryview) -> Dict[str, Any]:
    torch = lazy_imports.torch()
    buffer = torch.frombuffer(content, dtype=torch.uint8)
    return {
        slot.name: tensor_file.tensor_in(buffer, slot) for slot in tensor_file.slots_of(content)
    }
