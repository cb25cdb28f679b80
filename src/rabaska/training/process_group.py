"""The processes that train together: what they agree on, and how gradients are added up."""

import os
from typing import Any, Dict, List

from . import lazy_imports
from .errors import WrongUse


class ProcessGroup:
    """This process alone, or all ranks of torch.distributed.

    They speak over a group of their own, on the CPU: nothing waits for a GPU.
    """

    def __init__(self) -> None:
        self.rank, self.size, self.group = 0, 1, None
        world_size = int(os.environ.get("WORLD_SIZE") or 1)
        distributed = lazy_imports.torch().distributed
        if distributed.is_available() and distributed.is_initialized():
            self.rank, self.size = distributed.get_rank(), distributed.get_world_size()
        elif world_size > 1:
            raise WrongUse(
                "a session cannot start yet",
                why="WORLD_SIZE is {} and torch.distributed is not set up".format(world_size),
                hint="call torch.distributed.init_process_group() before session()",
            )
        if self.size > 1:
            self.group = distributed.new_group(backend="gloo")

    def apart(self) -> "ProcessGroup":
        """The same ranks, who speak beside this conversation: for a thread of its own."""
        return ProcessGroup()

    @property
    def first(self) -> bool:
        return self.rank == 0

    def agree(self, requests: List[int]) -> List[int]:
        """The largest of each wish over all ranks."""
        if self.group is None:
            return requests
        torch = lazy_imports.torch()
        highest = torch.tensor(requests, dtype=torch.int64)
        torch.distributed.all_reduce(highest, torch.distributed.ReduceOp.MAX, group=self.group)
        return [int(number) for number in highest.tolist()]

    def gather(self, value: Any) -> List[Any]:
        """What every rank says, in the order of ranks."""
        if self.group is None:
            return [value]
        values: List[Any] = [None] * self.size
        lazy_imports.torch().distributed.all_gather_object(values, value, group=self.group)
        return values

    def from_first(self, value: Any) -> Any:
        """What the first rank says."""
        if self.group is None:
            return value
        values = [value]
        lazy_imports.torch().distributed.broadcast_object_list(values, src=0, group=self.group)
        return values[0]


def settle(parts: Dict[str, Any]) -> None:
    """Have the new layout before the first step, by a backward pass that changes nothing."""
    wrapped = lazy_imports.torch().nn.parallel.DistributedDataParallel
    for part in parts.values():
        if isinstance(part, wrapped) and _changes_later(part):
            _go_back_once(part)


def _changes_later(model: Any) -> bool:
    """Whether the layout is not final yet, and nothing is in the buckets that somebody needs."""
    if model.find_unused_parameters or getattr(model, "static_graph", False):
        return False
    return all(weight.grad is None for weight in model.parameters())


def _go_back_once(model: Any) -> None:
    torch = lazy_imports.torch()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    with torch.enable_grad():
        model.reducer.prepare_for_backward([])
        torch.autograd.backward([(weight * 0).sum() for weight in weights])
        model.reducer._rebuild_buckets()
    for weight in weights:
        weight.grad = None
