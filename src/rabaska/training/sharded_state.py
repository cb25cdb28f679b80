"""State that is spread over processes, as by FSDP: through torch.distributed.checkpoint.

Every rank writes its own files into the folder that the first one has begun. Only when all of them
are durable and known by their checksums does the first one commit the checkpoint.
"""

import enum
import errno
import importlib
import os
import pickle
from typing import Any, Dict, List, NamedTuple, Tuple

from rabaska.node.checkpoints import commit

from . import lazy_imports
from .errors import CannotResume, NotSaveable
from .process_group import ProcessGroup

FOLDER = "sharded"
_METADATA = ".metadata"

Tensors = Dict[str, Any]  # by name
# One name for each dimension of the mesh: the dimension that is cut there, or None for a copy.
Placements = List[Any]


def is_sharded(value: Any) -> bool:
    return hasattr(value, "device_mesh") and hasattr(value, "placements")


def mesh_of(parts: Dict[str, Any]) -> Any:
    """The processes that the weights of a part are spread over, or None."""
    for part in parts.values():
        for weight in part.parameters() if hasattr(part, "parameters") else ():
            if is_sharded(weight):
                return weight.device_mesh
    return None


def split(tensors: Tensors) -> Tuple[Tensors, Tensors]:
    """The tensors that each rank has whole, and those that are spread."""
    complete = {name: tensor for name, tensor in tensors.items() if not is_sharded(tensor)}
    return complete, {name: tensor for name, tensor in tensors.items() if name not in complete}


def layout_of(tensor: Any, name: str) -> List[Any]:
    """What is needed to make a tensor of the same kind, for JSON."""
    placements = []
    for placement in tensor.placements:
        kind = type(placement).__name__
        if kind not in ("Shard", "Replicate"):
            raise NotSaveable(
                "`{}` cannot be saved".format(name),
                why="it is sharded by {}".format(kind),
                hint="a session supports tensors that are split along a dimension, or replicated",
            )
        placements.append(placement.dim if kind == "Shard" else None)
    return [name, list(tensor.shape), str(tensor.dtype).replace("torch.", ""), placements]


def like(content: List[Any], mesh: Any) -> Any:
    """An empty tensor as `told` described it."""
    name, shape, kind, placements = content
    if mesh is None or mesh.ndim != len(placements):
        raise CannotResume(
            "`{}` was sharded when it was saved".format(name),
            why="nothing in the session is sharded in that way",
            hint="shard the model before the session begins, as when the run began",
        )
    tensor = importlib.import_module("torch.distributed.tensor")
    return tensor.empty(
        *shape,
        dtype=getattr(lazy_imports.torch(), kind),
        device_mesh=mesh,
        placements=[tensor.Replicate() if d is None else tensor.Shard(d) for d in placements],
    )


class Writing(NamedTuple):
    """Files of all ranks that are on their way to a folder."""

    folder: str
    done: Any  # a future
    ranks: ProcessGroup

    def parts(self) -> List[commit.CheckpointPart]:
        """Wait, prove what this rank wrote, and give what all of them did."""
        problem, mine = "", []
        try:
            self.done.result()
            names = _written_by(self.ranks.rank, os.path.join(self.folder, FOLDER))
            mine = [tuple(commit.proven(self.folder, "/".join((FOLDER, name)))) for name in names]
        except BaseException as error:  # told to the others, who wait for this rank
            problem = "{}: {}".format(type(error).__name__, error)
        reports = self.ranks.gather((problem, mine))
        for rank, (why, _) in enumerate(reports):
            if why:
                raise OSError(_number_of(why), "rank {} could not write: {}".format(rank, why))
        return [commit.CheckpointPart(*part) for _, parts in reports for part in parts]


def _number_of(problem: str) -> int:
    """The system's number of a full disk; torch passes on its words only."""
    full = (number for number in commit.NO_SPACE if os.strerror(number) in problem)
    return next(full, errno.EIO)


def _written_by(rank: int, folder: str) -> List[str]:
    own = "__{}_".format(rank)
    return sorted(
        name
        for name in os.listdir(folder)
        if name.startswith(own) or (rank == 0 and name == _METADATA)
    )


def write(folder: str, tensors: Tensors, ranks: ProcessGroup) -> Writing:
    """Copy this rank's pieces of `tensors`, and begin to write them below `folder`."""
    dcp = _torch_checkpoints()
    writer = dcp.FileSystemWriter(os.path.join(folder, FOLDER))
    done = dcp.async_save(dict(tensors), storage_writer=writer, process_group=ranks.group)
    return Writing(folder, done, ranks)


def read(folder: str, tensors: Tensors, ranks: ProcessGroup) -> None:
    """Fill `tensors` with what was saved under their names; every rank must call it."""
    dcp = _torch_checkpoints()
    reader = dcp.FileSystemReader(os.path.join(folder, FOLDER))
    reader.read_metadata = lambda *_, **__: _metadata(reader)
    dcp.load(dict(tensors), storage_reader=reader, process_group=ranks.group)


def _torch_checkpoints() -> Any:
    return importlib.import_module("torch.distributed.checkpoint")


def _metadata(reader: Any) -> Any:
    """What the reader would read itself, without running what stands there: it is a pickle."""
    with open(os.path.join(str(reader.path), _METADATA), "rb") as stream:
        metadata = _SafeUnpickler(stream).load()
    metadata.storage_meta.load_id = reader.load_id
    return metadata


_METADATA_MODULE = "torch.distributed.checkpoint.metadata"
# Not BytesStorageMetadata: torch.distributed.checkpoint would unpickle what that tells of, with no
# care at all. We write tensors only.
_CLASSES = {
    (_METADATA_MODULE, "ChunkStorageMetadata"),
    (_METADATA_MODULE, "Metadata"),
    (_METADATA_MODULE, "MetadataIndex"),
    (_METADATA_MODULE, "StorageMeta"),
    (_METADATA_MODULE, "TensorProperties"),
    (_METADATA_MODULE, "TensorStorageMetadata"),
    (_METADATA_MODULE, "_MEM_FORMAT_ENCODING"),
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    ("torch", "Size"),
    ("pathlib", "PosixPath"),
    ("pathlib", "Path"),
    ("pathlib._local", "PosixPath"),  # Python 3.13
    ("collections", "OrderedDict"),
}


class _SafeUnpickler(pickle.Unpickler):
    """Knows what the metadata of torch.distributed.checkpoint consists of, and nothing else.

    Names are compared whole, and not looked up as pickle does: it follows each dot in them, from a
    harmless class to its methods, and from there to everything.
    """

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch.serialization", "_get_layout"):
            return _layout
        if (module, name) == ("builtins", "getattr"):
            return _member
        if (module, name) in _CLASSES:
            value, kind = getattr(importlib.import_module(module), name, None), type
        elif module == "torch":
            value, kind = getattr(lazy_imports.torch(), name, None), lazy_imports.torch().dtype
        else:
            value, kind = None, type
        if not isinstance(value, kind):
            raise pickle.UnpicklingError("{}.{} does not belong there".format(module, name))
        return value


def _member(kind: Any, name: str) -> Any:
    """As Python 3.11.0 to 3.11.3 pickle a member of an enumeration; nothing else has attributes."""
    if not isinstance(kind, enum.EnumMeta) or name not in kind.__members__:
        raise pickle.UnpicklingError("{} of {} does not belong there".format(name, kind))
    return kind.__members__[name]


def _layout(name: str) -> Any:
    """The layout of a tensor, such as `torch.strided`."""
    torch = lazy_imports.torch()
    layout = getattr(torch, str(name).replace("torch.", ""), None)
    if not isinstance(layout, torch.layout):
        raise pickle.UnpicklingError("{} is not a tensor layout".format(name))
    return layout
