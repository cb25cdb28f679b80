"""A training that its node slows down, or whose GPUs have nothing to do."""

import math
from collections.abc import Sequence

from rabaska.domain import command_options
from rabaska.domain.amounts import say_size
from rabaska.domain.run_measures import Bottleneck, Gpu, Measures, counted, times_faster

_IDLE_GPU = 0.03  # shares of the time
_UNDERUSED_GPU = 0.5
_BUSY_PROGRAM = 0.7  # of a core, for each process
_THROTTLED = 0.2  # of the looks
_SLOW_CLOCK = 0.85  # of the other GPUs'
_SLOW_RANK = 0.15  # of a step
_SWAPPING = 1e6  # bytes a second, read back
_LEAST_SWAP = 50e6  # bytes


def swapping(measured: Measures) -> Bottleneck | None:
    if measured.swapped_in < _SWAPPING or measured.swap_used < _LEAST_SWAP:
        return None
    needed = measured.memory_used + measured.swap_used
    size = math.ceil(needed * 1.2 / 1e9)
    return Bottleneck(
        "swapping",
        "Its memory does not fit: parts of it are moved to the disk and back.",
        f"{say_size(int(measured.swap_used))} lie on the swap disk, and "
        f"{say_size(int(measured.swapped_in))}/s are read back",
        f'`memory = "{size} GB"` in [resources]',
        0.95,  # nothing else is worth a look before that
    )


def throttling(measured: Measures) -> Bottleneck | None:
    slow = [gpu for gpu in measured.gpus if gpu.throttled >= _THROTTLED]
    if not slow:
        return None
    worst = max(slow, key=lambda gpu: gpu.throttled)
    reason = max(worst.reasons, key=lambda one: worst.reasons[one], default="its driver")
    ratio = worst.top_clock / worst.clock if worst.top_clock and worst.clock else None
    clocks = f", at {worst.clock:.0f} of {worst.top_clock:.0f} MHz" if ratio else ""
    heat = f", {worst.temperature:.0f} °C" if worst.temperature else ""
    return Bottleneck(
        "throttling",
        f"A GPU is slowed down by {reason}: {worst.name} of {worst.node}.",
        f"in {worst.throttled:.0%} of the looks{clocks}{heat}",
        _elsewhere(measured, worst.node),
        max(0.05, 1 - 1 / ratio) if ratio else 0.2,
        ratio,
    )


def idle_gpu(measured: Measures) -> Bottleneck | None:
    known = [gpu for gpu in measured.gpus if gpu.use is not None]
    idle = [gpu for gpu in known if (gpu.use or 0.0) < _IDLE_GPU]
    if not idle:
        return None
    names = ", ".join(f"{gpu.name} of {gpu.node}" for gpu in idle[:4])
    use = max(gpu.use or 0.0 for gpu in idle)
    if len(idle) < len(known):
        here = max(sum(gpu.node == one.node for gpu in idle) for one in idle)
        left = max(1, (measured.gpus_asked or _on_one_node(known)) - here)
        return Bottleneck(
            "idle GPU",
            f"{counted(len(idle), 'GPU')} of {len(known)} do nothing: {names}.",
            f"{use:.0%} used while the program trains",
            f'`gpus = {left}` in [resources]; or `launch = "torchrun"`, so that a process is '
            "started for each GPU",
            len(idle) / len(known),
        )
    return Bottleneck(
        "idle GPU",
        "The program trains, but not on its GPU.",
        f"{names}: {use:.0%} used while the program trains",
        "`gpus = 0` in [resources]; or have the program use it: its model and its batches "
        'need `.to("cuda")`, and its environment a PyTorch that is built for GPUs',
        1.0,
    )


def small_steps(measured: Measures) -> Bottleneck | None:
    """GPU idle between short pieces of work, and the program's own thread busy."""
    used = [gpu.use for gpu in measured.gpus if gpu.use is not None and gpu.use >= _IDLE_GPU]
    told = measured.waiting + measured.saving + measured.validating + measured.logging
    if not used or told > 1 - _UNDERUSED_GPU or measured.cores_used is None:
        return None
    use = sum(used) / len(used)
    all_own = measured.cores_used + measured.cores_lacked
    own = all_own - measured.cores_of_workers - measured.workers_lacked
    own /= max(1, measured.processes)
    if use >= _UNDERUSED_GPU * (1 - told) or own < _BUSY_PROGRAM * (1 - told):
        return None
    batch = f" of {counted(measured.batch_size, 'sample')}" if measured.batch_size else ""
    line = command_options.changed(measured.command, command_options.BATCH, factor=2)
    twice = f"a batch size of {2 * measured.batch_size}" if measured.batch_size else ""
    return Bottleneck(
        "small steps",
        "The GPU waits for Python: its steps are too small, or the program does much in between.",
        f"the GPU is used {use:.0%} of the time, the program would use {own:.0%} of a core, "
        f"and a step{batch} takes {measured.each * 1000:.3g} ms",
        (line or twice or "larger batches") + "; or less Python between two steps",
        1 - use - told,
        2 / (1 + use),
    )


def slow_rank(measured: Measures) -> Bottleneck | None:
    if len(measured.ranks) >= 2 and measured.each > 0:
        own = {one.rank: one.waiting + one.forward for one in measured.ranks}
        slowest = max(measured.ranks, key=lambda one: own[one.rank])
        others = median([seconds for rank, seconds in own.items() if rank != slowest.rank])
        more = own[slowest.rank] - others
        if more >= _SLOW_RANK * measured.each and more >= 0.3 * others:
            rest = [one.waiting for one in measured.ranks if one is not slowest]
            waits = slowest.waiting - median(rest)
            return _of_rank(measured, slowest.rank, slowest.host, more, by_data=waits > more / 2)
    return _slow_gpu(measured)


def _of_rank(measured: Measures, rank: int, host: str, more: float, *, by_data: bool) -> Bottleneck:
    doing = "waits longer for its data" if by_data else "computes longer"
    share = min(0.9, more / measured.each)
    return Bottleneck(
        "slow rank",
        f"One process is slower, and all others wait for it: rank {rank} on {host}.",
        f"it {doing}: {more * 1000:.3g} ms more of each step of {measured.each * 1000:.3g} ms",
        "give every rank equal work; or, if it is the node, " + _elsewhere(measured, host),
        share + 0.001,  # before the waiting of this very rank
        times_faster(share),
    )


def _slow_gpu(measured: Measures) -> Bottleneck | None:
    working = [gpu for gpu in measured.gpus if gpu.clock and (gpu.use or 0.0) > _UNDERUSED_GPU]
    if len(working) < 2:
        return None
    slowest = min(working, key=lambda gpu: gpu.clock or 0.0)
    usual = median([gpu.clock or 0.0 for gpu in working if gpu is not slowest])
    if (slowest.clock or 0.0) >= _SLOW_CLOCK * usual:
        return None
    ratio = usual / (slowest.clock or 1.0)
    return Bottleneck(
        "slow rank",
        f"One GPU is slower, and all others wait for it: {slowest.name} of {slowest.node}.",
        f"it runs at {slowest.clock:.0f} MHz, the others at {usual:.0f} MHz",
        _elsewhere(measured, slowest.node),
        1 - 1 / ratio,
        ratio,
    )


def median(values: Sequence[float]) -> float:
    """Without the module `statistics`, which takes longer to import than `status` may."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _elsewhere(measured: Measures, node: str) -> str:
    line = f'`native = ["--exclude={node}"]` in [cluster.{measured.cluster or "NAME"}]'
    return f"{line} (Slurm), and tell the site's support"


def _on_one_node(gpus: Sequence[Gpu]) -> int:
    return max(sum(gpu.node == one.node for gpu in gpus) for one in gpus)
