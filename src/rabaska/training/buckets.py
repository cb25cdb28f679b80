"""The order in which DistributedDataParallel adds gradients up, made the same in every job.

After its first backward pass it lays its buckets out anew, in the order in which gradients came.
With more than two ranks, the place of a number in its bucket decides in which order it is summed:
the first step after a resume would round otherwise than the same step of a run that went on.
"""

from typing import Any, Dict

from rabaska.training import lazily


def settle(parts: Dict[str, Any]) -> None:
    """Have the new layout before the first step, by a backward pass that changes nothing."""
    wrapped = lazily.torch().nn.parallel.DistributedDataParallel
    for part in parts.values():
        if isinstance(part, wrapped) and _changes_later(part):
            _go_back_once(part)


def _changes_later(model: Any) -> bool:
    """Whether the layout is not final yet, and nothing is in the buckets that somebody needs."""
    if model.find_unused_parameters or getattr(model, "static_graph", False):
        return False
    return all(weight.grad is None for weight in model.parameters())


def _go_back_once(model: Any) -> None:
    torch = lazily.torch()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    with torch.enable_grad():
        model.reducer.prepare_for_backward([])
        torch.autograd.backward([(weight * 0).sum() for weight in weights])
        model.reducer._rebuild_buckets()
    for weight in weights:
        weight.grad = None
