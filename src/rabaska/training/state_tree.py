"""A program's state as a tree of plain values and tensors, every container kept as its own type."""

import base64
import sys
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import lazy_imports, sharded_state
from .errors import NotSaveable

_FACTORIES: Dict[str, Any] = {
    kind.__name__: kind for kind in (int, float, bool, str, list, dict, set, tuple, Counter)
}
_OF_ITEMS: Dict[str, Callable[[List[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}
_OF_PAIRS: Dict[str, Callable[[Dict[Any, Any]], Any]] = {
    "dict": dict,
    "ordered": OrderedDict,
    "counter": Counter,
}


class ContainerParts(NamedTuple):
    """A container taken apart."""

    kind: str
    about: Any = None  # what else it takes to make it again, fit for JSON
    items: Optional[List[Any]] = None
    pairs: Optional[Dict[Any, Any]] = None


def parts_of(value: Any) -> Optional[ContainerParts]:
    """The parts of a container; None for what is none, or of a class that is not known."""
    for kind, mapping in _OF_PAIRS.items():
        if type(value) is mapping:
            return ContainerParts(kind, pairs=value)
    for kind, sequence in _OF_ITEMS.items():
        if type(value) is sequence:
            return ContainerParts(kind, items=list(value))
    if type(value) is defaultdict:
        return _default(value)
    if type(value) is deque:
        return ContainerParts("deque", about=value.maxlen, items=list(value))
    if type(value) is lazy_imports.torch().Size:
        return ContainerParts("size", items=list(value))
    if isinstance(value, tuple) and hasattr(value, "_fields") and hasattr(value, "_make"):
        made_by = type(value)
        about = [made_by.__module__, made_by.__qualname__, list(value._fields)]
        return ContainerParts("namedtuple", about=about, items=list(value))
    return None


def _default(value: Any) -> Optional[ContainerParts]:
    factory = value.default_factory
    name = "" if factory is None else factory.__name__
    if factory is not None and _FACTORIES.get(name) is not factory:
        return None
    return ContainerParts("defaultdict", about=name, pairs=value)


def made_of_items(kind: str, about: Any, items: List[Any]) -> Any:
    if kind == "deque":
        return deque(items, about)
    if kind == "size":
        return lazy_imports.torch().Size(items)
    if kind == "namedtuple":
        return _named(*about)._make(items)
    return _OF_ITEMS[kind](items)


def made_of_pairs(kind: str, about: Any, pairs: Dict[Any, Any]) -> Any:
    if kind == "defaultdict":
        return defaultdict(_FACTORIES.get(about), pairs)
    return _OF_PAIRS[kind](pairs)


def is_of_items(kind: str) -> bool:
    return kind in _OF_ITEMS or kind in ("deque", "size", "namedtuple")


def is_of_pairs(kind: str) -> bool:
    return kind in _OF_PAIRS or kind == "defaultdict"


def _named(module: str, name: str, fields: List[str]) -> Any:
    """The class itself where the program has it, else one like it; nothing is imported for it."""
    kind: Any = sys.modules.get(module)
    for part in name.split("."):
        kind = getattr(kind, part, None)
    is_tuple = isinstance(kind, type) and issubclass(kind, tuple)
    if is_tuple and list(getattr(kind, "_fields", ())) == fields:
        return kind
    return namedtuple(name.rpartition(".")[2], fields)


def why_not(value: Any) -> Tuple[str, str]:
    """Why something like a container is not saved, and what to do."""
    kind = "{}.{}".format(type(value).__module__, type(value).__qualname__)
    if type(value) is defaultdict:
        return (
            "it is a defaultdict whose default_factory is {!r}".format(value.default_factory),
            "give it a factory such as `int` or `list`, or save `dict(...)` of it",
        )
    return (
        "it is a {}, which would be loaded as a plain container".format(kind),
        "save `dict(...)`, `list(...)` or `tuple(...)` of it",
    )


Json = Any
Tensors = Dict[str, Any]  # by name


def encode(value: Any, name: str) -> Tuple[Json, Tensors]:
    """`value` as JSON, and the tensors it holds, which are named from `name` on."""
    encoder = _Encoder()
    return encoder.encode(value, name), encoder.tensors


class _Encoder:
    def __init__(self) -> None:
        self.tensors: Tensors = {}
        self._known: Dict[Any, str] = {}
        self._torch = lazy_imports.torch()

    def encode(self, value: Any, name: str) -> Json:
        if value is None or isinstance(value, (bool, int, float, str)):
            return _plain(value)
        if isinstance(value, self._torch.Tensor):
            if sharded_state.is_sharded(value):
                return {"is": "sharded", "of": self._sharded(value.detach(), name)}
            return {"is": "tensor", "of": self._tensor(value, name)}
        encoded = self._container(value, name)
        if encoded is not None:
            return encoded
        kind, content = self._rare(value, name)
        return {"is": kind, "of": content}

    def _container(self, value: Any, name: str) -> Json:
        """None when `value` is no container."""
        container = parts_of(value)
        if container is None:
            if isinstance(value, (dict, list, tuple, set, frozenset, deque)):
                why, hint = why_not(value)
                raise NotSaveable("`{}` cannot be saved".format(name), why=why, hint=hint)
            return None
        if container.pairs is not None:
            content = self._pairs(container.pairs, name)
        else:
            items = enumerate(container.items or ())
            content = [self.encode(item, _below(name, place)) for place, item in items]
        if container.kind == "list":
            return content
        record = {"is": container.kind, "of": content}
        return record if container.about is None else dict(record, about=container.about)

    def _pairs(self, value: Dict[Any, Any], name: str) -> Json:
        if all(type(key) is str for key in value):
            return {key: self.encode(item, _below(name, key)) for key, item in value.items()}
        return [
            [self.encode(key, _below(name, "key")), self.encode(item, _below(name, key))]
            for key, item in value.items()
        ]

    def _rare(self, value: Any, name: str) -> Tuple[str, Json]:
        torch, numpy = self._torch, lazy_imports.numpy()
        if isinstance(value, (bytes, bytearray)):
            kind = "bytearray" if isinstance(value, bytearray) else "bytes"
            return kind, base64.b64encode(value).decode("ascii")
        if isinstance(value, complex):
            return "complex", [value.real, value.imag]
        if isinstance(value, (torch.dtype, torch.device)):
            return type(value).__name__, str(value).replace("torch.", "")
        if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
            return self._array(value, name)
        raise NotSaveable(
            "`{}` cannot be saved".format(name),
            why="it is a {}.{}, and a checkpoint holds numbers, text, lists, dictionaries and "
            "tensors only".format(type(value).__module__, type(value).__qualname__),
            hint="leave it out of `state_dict`, or save the values it consists of",
        )

    def _array(self, value: Any, name: str) -> Tuple[str, Json]:
        if value.dtype.hasobject or value.dtype.names:
            raise NotSaveable(
                "`{}` cannot be saved".format(name),
                why="it is an array of {}".format(value.dtype),
                hint="save arrays of numbers",
            )
        kind = "scalar" if not hasattr(value, "setflags") or value.ndim == 0 else "array"
        content = base64.b64encode(value.tobytes()).decode("ascii")
        return kind, [value.dtype.str, list(value.shape), content]

    def _sharded(self, value: Any, name: str) -> Json:
        self.tensors[name] = value
        return sharded_state.layout_of(value, name)

    def _tensor(self, value: Any, name: str) -> str:
        if hasattr(value, "local_shards"):
            raise NotSaveable(
                "`{}` cannot be saved".format(name),
                why="it is a ShardedTensor of the first FSDP",
                hint="shard the model by `torch.distributed.fsdp.fully_shard`",
            )
        tensor = value.detach()
        if tensor.layout != self._torch.strided or tensor.is_quantized:
            raise NotSaveable(
                "`{}` cannot be saved".format(name),
                why="it is a tensor of layout {}".format(tensor.layout),
                hint="save the dense tensors it consists of",
            )
        same = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if tensor.numel() and same in self._known:
            return self._known[same]  # tied weights are saved once
        free, number = name, 1
        while free in self.tensors:
            number += 1
            free = "{}#{}".format(name, number)
        self.tensors[free] = tensor
        self._known[same] = free
        return free


def _plain(value: Any) -> Json:
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)  # numpy.float64 and IntEnum become what they are made of
    return value


def _below(name: str, key: Any) -> str:
    return "{}.{}".format(name, key)


def decode(value: Json, tensor: Callable[[Json], Any]) -> Any:
    """The reverse of `encode`; `tensor` gives each tensor by what was told of it."""
    if isinstance(value, list):
        return [decode(item, tensor) for item in value]
    if not isinstance(value, dict):
        return value
    kind, content = value["is"], value["of"]
    if kind in ("tensor", "sharded"):
        return tensor(content)
    if is_of_pairs(kind):
        pairs = content.items() if isinstance(content, dict) else content
        pairs_read = {_key(key, tensor): decode(item, tensor) for key, item in pairs}
        return made_of_pairs(kind, value.get("about"), pairs_read)
    if is_of_items(kind):
        items = [decode(item, tensor) for item in content]
        return made_of_items(kind, value.get("about"), items)
    return _decode_rare(kind, content, tensor)


def _key(key: Json, tensor: Callable[[Json], Any]) -> Any:
    return key if isinstance(key, str) else decode(key, tensor)


def _decode_rare(kind: str, content: Json, tensor: Callable[[Json], Any]) -> Any:
    if kind in ("bytes", "bytearray"):
        raw = base64.b64decode(content)
        return bytearray(raw) if kind == "bytearray" else raw
    if kind == "complex":
        return complex(*content)
    if kind == "dtype":
        return getattr(lazy_imports.torch(), content)
    if kind == "device":
        return lazy_imports.torch().device(content)
    if kind in ("array", "scalar"):
        import numpy

        array = numpy.frombuffer(base64.b64decode(content[2]), dtype=content[0])
        array = array.reshape(content[1]).copy()
        return array if kind == "array" else array[()]
    raise ValueError("a checkpoint holds something of the unknown kind {!r}".format(kind))
