"""The memory that a state is copied to before it is written, made once and used again.

Copying 1 GB into memory that is there takes a tenth of a second; into fresh memory, half of one.
"""

import ctypes
import mmap
import os
import threading
from contextlib import suppress
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import lazy_imports, tensor_file

_ROUND = 2 << 20  # bytes; a huge page
_PIECE = 4 << 20  # bytes that are copied at a time
_HANDS = 4  # threads that copy at the most; more do not fill the memory's channels faster


class StateSnapshot(NamedTuple):
    """A file of tensors, ready in memory."""

    content: memoryview  # of whole blocks
    size: int  # bytes of the file; what follows in `content` is padding


class SnapshotMemory:
    def __init__(self) -> None:
        self._room: Any = None  # a tensor of bytes
        self._views: Tuple[Any, List[Any]] = (None, [])
        self._preparing: Optional[threading.Thread] = None

    def prepare(self, tensors: Dict[str, Any]) -> None:
        """Make room for `tensors` in the background, before it is needed."""
        size = tensor_file.layout(list(tensors.items())).size
        on_gpu = _any_on_gpu(tensors)
        self._preparing = threading.Thread(target=self._make_room, args=(size, on_gpu))
        self._preparing.start()

    def take(self, tensors: Dict[str, Any]) -> StateSnapshot:
        """Copy all tensors as they are now; the snapshot before this one is lost."""
        if self._preparing is not None:
            self._preparing.join()
            self._preparing = None
        planned = tensor_file.layout(list(tensors.items()))
        on_gpu = _any_on_gpu(tensors)
        self._make_room(planned.size, on_gpu)
        content = _bytes_of(self._room)
        content[: len(planned.header)] = planned.header
        sources = [
            tensor_file.as_it_lies(tensor, slot)
            for tensor, slot in zip(tensors.values(), planned.slots)
        ]
        _copy(self._targets(planned), sources, on_gpu)
        rounded = -(-planned.size // tensor_file.BLOCK) * tensor_file.BLOCK
        return StateSnapshot(content[:rounded], planned.size)

    def _make_room(self, size: int, on_gpu: bool) -> None:
        if self._room is not None and self._room.numel() >= size:
            return
        self._room, self._views = None, (None, [])
        self._room = _pinned(size) if on_gpu else _touched(size)

    def _targets(self, planned: tensor_file.TensorLayout) -> List[Any]:
        if self._views[0] != planned.slots:
            views = [tensor_file.room(self._room, slot) for slot in planned.slots]
            self._views = planned.slots, views
        return self._views[1]


def _any_on_gpu(tensors: Dict[str, Any]) -> bool:
    return any(tensor.is_cuda for tensor in tensors.values())


def _bytes_of(room: Any) -> memoryview:
    """The same memory without NumPy, which PyTorch does not need and some programs lack."""
    area = (ctypes.c_ubyte * room.numel()).from_address(room.data_ptr())
    area.owner = room  # it lives for as long as somebody looks at it
    return memoryview(area).cast("B")


def _rounded(size: int) -> int:
    return max(1, -(-size // _ROUND)) * _ROUND


def _touched(size: int) -> Any:
    """Anonymous memory in huge pages, each of them touched so that it is really there."""
    area = mmap.mmap(-1, _rounded(size), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            area.madvise(mmap.MADV_HUGEPAGE)
    return lazy_imports.torch().frombuffer(area, dtype=lazy_imports.torch().uint8).zero_()


def _pinned(size: int) -> Any:
    torch = lazy_imports.torch()
    return torch.empty(_rounded(size), dtype=torch.uint8, pin_memory=True)


def _copy(targets: List[Any], sources: List[Any], on_gpu: bool) -> None:
    torch = lazy_imports.torch()
    if on_gpu:
        _copy_all(list(zip(targets, sources)), on_gpu)
        torch.cuda.synchronize()
        return
    pieces = [piece for target, source in zip(targets, sources) for piece in _cut(target, source)]
    # The training waits: cores that PyTorch was not given may help meanwhile.
    hands = min(_HANDS, len(os.sched_getaffinity(0)) // torch.get_num_threads(), len(pieces))
    helping = [threading.Thread(target=_copy_all, args=(pieces,)) for _ in range(hands - 1)]
    for thread in helping:
        thread.start()
    _copy_all(pieces)
    for thread in helping:
        thread.join()


def _cut(target: Any, source: Any) -> List[Tuple[Any, Any]]:
    """Pieces of equal size, where both lie in memory in the same order."""
    numbers = _PIECE // target.element_size()
    if target.numel() <= numbers or not (target.is_contiguous() and source.is_contiguous()):
        return [(target, source)]
    return list(zip(target.view(-1).split(numbers), source.view(-1).split(numbers)))


def _copy_all(pairs: List[Tuple[Any, Any]], on_gpu: bool = False) -> None:
    """Copy until there is nothing left; who comes late, on a busy computer, finds less to do."""
    with lazy_imports.torch().no_grad():
        while True:
            try:
                target, source = pairs.pop()
            except IndexError:
                return
            target.copy_(source, non_blocking=on_gpu)
