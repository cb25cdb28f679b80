"""State as JSON beside tensors: nothing that is read back can run code.

Numbers, text and lists are themselves; everything else is {"is": kind, "of": content}. A tensor
is told by its name in the file of tensors.
"""

import base64
from collections import deque
from typing import Any, Callable, Dict, Tuple

from . import containers, lazy_imports, sharded_state
from .errors import NotSaveable

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
        container = containers.parts_of(value)
        if container is None:
            if isinstance(value, (dict, list, tuple, set, frozenset, deque)):
                why, hint = containers.why_not(value)
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
    if containers.is_of_pairs(kind):
        pairs = content.items() if isinstance(content, dict) else content
        pairs_read = {_key(key, tensor): decode(item, tensor) for key, item in pairs}
        return containers.made_of_pairs(kind, value.get("about"), pairs_read)
    if containers.is_of_items(kind):
        items = [decode(item, tensor) for item in content]
        return containers.made_of_items(kind, value.get("about"), items)
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
