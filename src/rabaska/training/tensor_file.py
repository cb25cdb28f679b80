"""The file of tensors: the safetensors format, laid out so that it can be written directly.

A length, a JSON header padded with spaces to a whole block, then the tensors one after another,
the widest numbers first so that each begins at a multiple of its width.
"""

import json
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import lazy_imports
from .errors import NotSaveable

BLOCK = 4096  # bytes; what a direct write must begin at and consist of

KINDS = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "complex64": "C64",
    "complex128": "C128",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}
_NAMES = {kind: name for name, kind in KINDS.items()}


class TensorSlot(NamedTuple):
    """Where one tensor lies in the file."""

    name: str
    kind: str
    shape: Tuple[int, ...]  # of the tensor as it lies in memory
    order: Optional[Tuple[int, ...]]  # its dimensions, when memory has them in another order
    begin: int  # bytes from the beginning of the file
    size: int  # bytes


class TensorLayout(NamedTuple):
    header: bytes  # with its length and padding
    slots: List[TensorSlot]  # in the order of the tensors that were given
    size: int  # bytes of the whole file


def layout(tensors: Sequence[Tuple[str, Any]]) -> TensorLayout:
    shapes = [_in_memory(tensor) for _, tensor in tensors]
    widest_first = sorted(range(len(tensors)), key=lambda n: -tensors[n][1].element_size())
    table: Dict[str, Any] = {}
    ends, end = {}, 0
    for number in widest_first:
        name, tensor = tensors[number]
        size = tensor.numel() * tensor.element_size()
        table[name] = {"dtype": _kind(name, tensor), "shape": shapes[number][0]}
        table[name]["data_offsets"] = [end, end + size]
        ends[number] = end
        end += size
    orders = {name: order for (name, _), (_, order) in zip(tensors, shapes) if order}
    table["__metadata__"] = {"format": "pt", "order": json.dumps(orders)}
    text = json.dumps(table).encode("utf-8")
    text += b" " * (-(8 + len(text)) % BLOCK)
    begin = 8 + len(text)
    slots = [
        TensorSlot(
            name,
            table[name]["dtype"],
            tuple(shapes[number][0]),
            shapes[number][1],
            begin + ends[number],
            tensor.numel() * tensor.element_size(),
        )
        for number, (name, tensor) in enumerate(tensors)
    ]
    return TensorLayout(struct.pack("<Q", len(text)) + text, slots, begin + end)


def _in_memory(tensor: Any) -> Tuple[List[int], Optional[Tuple[int, ...]]]:
    """The tensor's shape as memory has it, and the order of its dimensions if that differs.

    A tensor in channels-last order must come back so: another order adds up in another order.
    """
    if tensor.is_contiguous():
        return list(tensor.shape), None
    strides = tensor.stride()
    order = tuple(sorted(range(tensor.dim()), key=lambda d: (-strides[d], d)))
    if tensor.permute(order).is_contiguous():
        return [tensor.shape[d] for d in order], order
    return list(tensor.shape), None  # a view with holes: the numbers count


def _kind(name: str, tensor: Any) -> str:
    kind = KINDS.get(str(tensor.dtype).replace("torch.", ""))
    if kind is None:
        raise NotSaveable(
            "`{}` cannot be saved".format(name),
            why="tensors of type {} are not supported".format(tensor.dtype),
            hint="convert it in `state_dict`",
        )
    return kind


def as_it_lies(tensor: Any, slot: TensorSlot) -> Any:
    return tensor if slot.order is None else tensor.permute(slot.order)


def room(buffer: Any, slot: TensorSlot) -> Any:
    """The place of `slot` in a buffer of bytes (a tensor of uint8), as a tensor of its kind."""
    dtype = getattr(lazy_imports.torch(), _NAMES[slot.kind])
    place = buffer[slot.begin : slot.begin + slot.size]
    if not slot.size:
        return place.new_empty(slot.shape, dtype=dtype)
    return place.view(dtype).reshape(slot.shape)


def slots_of(buffer: memoryview) -> List[TensorSlot]:
    """What the header of a whole file says."""
    length = struct.unpack("<Q", buffer[:8])[0]
    table = json.loads(bytes(buffer[8 : 8 + length]).decode("utf-8"))
    orders = json.loads(table.pop("__metadata__", {}).get("order", "{}"))
    slots = []
    for name, entry in table.items():
        first, last = entry["data_offsets"]
        order = tuple(orders[name]) if name in orders else None
        shape, begin = tuple(entry["shape"]), 8 + length + first
        slots.append(TensorSlot(name, entry["dtype"], shape, order, begin, last - first))
    return slots


def tensor_in(buffer: Any, slot: TensorSlot) -> Any:
    """A copy of its own: what lies beside others is aligned otherwise, which sums may show."""
    tensor = room(buffer, slot).clone()
    if slot.order is None:
        return tensor
    back = sorted(range(len(slot.order)), key=slot.order.__getitem__)
    return tensor.permute(back)
