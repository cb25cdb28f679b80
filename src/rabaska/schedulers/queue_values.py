"""What queues of several schedulers tell alike: counts, sizes and time limits."""

import re
from dataclasses import replace
from datetime import timedelta

from rabaska.domain.clusters import Partition
from rabaska.domain.queue_limits import share_of_cores, share_of_memory

_LONGEST = timedelta(days=366)  # more is no limit that anybody meets
_SIZES = {"": 1, "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}


def together(one: Partition, other: Partition) -> Partition:
    """One queue with two kinds of node: as large as the larger.

    Where other nodes are larger than those with the GPUs, what goes with a GPU is theirs: nobody
    gets a GPU together with the memory of a node that has none.
    """
    better = max(one, other, key=lambda each: each.gpus)
    cores, memory = max(one.cores, other.cores), max(one.memory, other.memory)
    of_gpu = better
    if better.gpus and cores > better.cores:
        of_gpu = replace(of_gpu, cores_per_gpu=share_of_cores(better, 1))
    if better.gpus and memory > better.memory:
        of_gpu = replace(of_gpu, memory_per_gpu=share_of_memory(better, 1))
    return replace(
        one,
        nodes=one.nodes + other.nodes,
        cores=cores,
        memory=memory,
        gpus=better.gpus,
        gpu_model=better.gpu_model,
        cores_per_gpu=of_gpu.cores_per_gpu,
        memory_per_gpu=of_gpu.memory_per_gpu,
        default=one.default or other.default,
    )


def walltime(text: str) -> timedelta | None:
    """`D-HH:MM:SS`, `HH:MM:SS` or `MM:SS`; None for `infinite` and what nobody foresaw."""
    found = re.fullmatch(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d{1,6})", text.strip())
    if not found:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    return span if timedelta(0) < span <= _LONGEST else None


def span(text: str) -> timedelta | None:
    """`HH:MM:SS`, or plain seconds."""
    return walltime(f"0:{text}" if text.strip().isdecimal() else text)


def size(text: str) -> int:
    """`24658572kb` in bytes, whole mebibytes of them."""
    found = re.fullmatch(r"(\d{1,15})([kmgt]?b?)", text.strip().lower(), re.ASCII)
    return whole_mebibytes(int(found[1]) * _SIZES.get(found[2], 1)) if found else 0


def whole_mebibytes(memory: int) -> int:
    """As profiles write it."""
    return memory // 2**20 * 2**20


def count(text: str) -> int:
    found = re.match(r"\d{1,12}", text.strip())  # "24+": there are larger ones
    return int(found[0]) if found else 0
