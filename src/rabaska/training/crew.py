"""The processes that train together: what they agree on, and who writes."""

import os
from typing import Any, List

from rabaska.training import lazily
from rabaska.training.trouble import WrongUse


class Crew:
    """This process alone, or all ranks of torch.distributed.

    They speak over a group of their own, on the CPU: nothing waits for a GPU.
    """

    def __init__(self) -> None:
        self.rank, self.size, self.group = 0, 1, None
        told = int(os.environ.get("WORLD_SIZE") or 1)
        distributed = lazily.torch().distributed
        if distributed.is_available() and distributed.is_initialized():
            self.rank, self.size = distributed.get_rank(), distributed.get_world_size()
        elif told > 1:
            raise WrongUse(
                "a session cannot begin yet",
                why="WORLD_SIZE is {} and torch.distributed is not set up".format(told),
                hint="call torch.distributed.init_process_group() before session()",
            )
        if self.size > 1:
            self.group = distributed.new_group(backend="gloo")

    def apart(self) -> "Crew":
        """The same ranks, who speak beside this conversation: for a thread of its own."""
        return Crew()

    @property
    def first(self) -> bool:
        return self.rank == 0

    def agree(self, wishes: List[int]) -> List[int]:
        """The largest of each wish over all ranks."""
        if self.group is None:
            return wishes
        torch = lazily.torch()
        told = torch.tensor(wishes, dtype=torch.int64)
        torch.distributed.all_reduce(told, torch.distributed.ReduceOp.MAX, group=self.group)
        return [int(one) for one in told.tolist()]

    def gather(self, value: Any) -> List[Any]:
        """What every rank says, in the order of ranks."""
        if self.group is None:
            return [value]
        told: List[Any] = [None] * self.size
        lazily.torch().distributed.all_gather_object(told, value, group=self.group)
        return told

    def from_first(self, value: Any) -> Any:
        """What the first rank says."""
        if self.group is None:
            return value
        told = [value]
        lazily.torch().distributed.broadcast_object_list(told, src=0, group=self.group)
        return told[0]
