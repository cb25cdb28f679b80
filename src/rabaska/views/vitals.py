"""What the nodes of a run do at the moment, in words: its GPUs, cores and memory."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rabaska.domain.amounts import say_size
from rabaska.domain.runs import RunState, RunStatus
from rabaska.views.words import WARNING, Remark, counted

if TYPE_CHECKING:
    from rabaska.domain.run_measures import Gpu

_NODES = 3  # that are named
_ERRORS_HINT = "save and end the run if it crashes; tell the site's support which node it is"


def remarks(run: RunStatus) -> Iterator[Remark]:
    """While it runs: a line for each of the first nodes, and errors of GPUs."""
    if run.state is not RunState.RUNNING or not run.vitals:
        return
    from rabaska.domain.run_measures import measures

    gpus = measures(run).gpus
    for node in list(run.vitals)[:_NODES]:
        own = [gpu for gpu in gpus if gpu.node == node]
        if words := in_words(run.vitals[node], own):
            yield Remark("", f"vitals of {node}", words)
    more = len(run.vitals) - _NODES
    if more > 0:
        yield Remark("", "vitals", f"and of {counted(more, 'node')} more: `rabaska watch`")
    for gpu in gpus:
        if gpu.errors >= 1:
            text = f"{gpu.name} of {gpu.node} has {counted(round(gpu.errors), 'error')}"
            yield Remark(WARNING, WARNING, text, _ERRORS_HINT)


def in_words(node: dict[str, float], gpus: "list[Gpu]") -> str:
    """`GPUs 93%, 91% used, 540 W; 5.1 of 8 cores; 12 GB of 64 GB of memory`"""
    parts = []
    used = [f"{gpu.use:.0%}" for gpu in gpus if gpu.use is not None]
    if used:
        power = sum(gpu.power or 0.0 for gpu in gpus)
        watts = f", {power:.0f} W" if power else ""
        parts.append(f"{'GPU' if len(used) == 1 else 'GPUs'} {', '.join(used)} used{watts}")
    if node.get("cores granted"):
        parts.append(f"{node.get('cores used', 0.0):.2g} of {node['cores granted']:.0f} cores")
    if memory := node.get("memory used"):
        limit = node.get("memory limit")
        of = f" of {say_size(int(limit))}" if limit else ""
        parts.append(f"{say_size(int(memory))}{of} of memory")
    return "; ".join(parts)
