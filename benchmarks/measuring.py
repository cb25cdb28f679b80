"""Fair measuring: contenders take turns in a shuffled order, and the median counts."""

import os
import random
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from resource import struct_rusage

Work = Callable[[], float]  # does it once and returns what it cost


class Cost(float):
    """A median, and what it is the median of, in the order of rounds."""

    samples: tuple[float, ...]

    def __new__(cls, samples: Sequence[float]) -> "Cost":
        made = super().__new__(cls, statistics.median(samples))
        made.samples = tuple(samples)
        return made


def spread(ours: float, theirs: float) -> float:
    """By how much the ratio of two costs differed from round to round: half of its middle half.

    One round that was disturbed says nothing about the others. 0 where only medians are known.
    """
    if not isinstance(ours, Cost) or not isinstance(theirs, Cost) or len(ours.samples) < 2:
        return 0.0
    ratios = [b / a for a, b in zip(ours.samples, theirs.samples, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return (high - low) / 2


def medians(contenders: Mapping[str, Work], repeats: int, *, seed: int = 0) -> dict[str, Cost]:
    """The median cost of each contender.

    They are interleaved, so that a busy minute hurts all alike, and shuffled, so that none
    always comes after another. A first round warms the caches and is not counted.
    """
    order = random.Random(seed)
    costs: dict[str, list[float]] = {name: [] for name in contenders}
    for repeat in range(repeats + 1):
        for name in order.sample(sorted(contenders), len(contenders)):
            cost = contenders[name]()
            if repeat > 0:
                costs[name].append(cost)
    return {name: Cost(measured) for name, measured in costs.items()}


def processor_seconds(command: Sequence[str]) -> float:
    """The processor time of a command, which other work on the computer hardly changes."""
    usage = used(command)
    return usage.ru_utime + usage.ru_stime


def used(command: Sequence[str]) -> struct_rusage:
    """What a command and all that it waited for used."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # so that nobody waits for it again
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with exit code {process.returncode}")
    return usage
