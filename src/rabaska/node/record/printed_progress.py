"""Steps, epochs and metrics, read from what a training program prints.

No program is asked to print in a given way; these are the ways programs do print:

    step 400 loss 0.4123                          a student's script
    Epoch: [3][20/500]  Loss 0.41 (0.52)          PyTorch's ImageNet example
    Epoch 3/10 … 45/45 - 1s - loss: 0.41          Keras
    {'loss': 0.5, 'epoch': 1.0}                   Hugging Face Trainer
    Epoch 3:  40%|███  | 40/100 [00:02<, loss=0.4]   Lightning, and tqdm in general
    Iteration 560, loss = 6.69755                 Caffe
    [3/25][20/782] Loss_D: 0.52                   PyTorch's DCGAN example

What counts as a step: a number named step, iteration, batch … ; else the position of a progress
bar counted over its epochs; else the epoch. The three are never compared with each other.
"""

import os
import re
from typing import Iterator, List, NamedTuple, Optional, Pattern, Tuple

from .printed_line import (
    LONGEST_LINE,
    Finite,
    Found,
    PrintedLine,
    epoch_in,
    metrics_in,
    read_by_pattern,
    read_line,
)

SLICE = 64 * 1024  # bytes read at the head and at the tail of a log
GLANCE = 4 * 1024  # bytes that are tried first: most logs tell a step or an epoch in each line
FEW = 40  # last lines that metrics are looked for in


class PrintedProgress(NamedTuple):
    step: Optional[int]
    epoch: Optional[float]
    metrics: Found


class StepSpan(NamedTuple):
    first_step: Optional[int]
    last_step: Optional[int]
    epoch: Optional[float]  # the last one seen
    metrics: Found  # the last value of each
    every: Optional[int] = None  # steps from one that is printed to the next


def read(text: str, pattern: str = "") -> PrintedProgress:
    """The last step, the last epoch and the last value of each metric in `text`.

    `pattern` is the user's own regular expression: its groups `step` and `epoch` (or its first
    group, which is then a step) count, and what is built in is not used for either.
    """
    return _last(list(_read_lines(_lines(text), _compiled(pattern))))


def points(text: str, pattern: str = "") -> List[Tuple[int, Finite]]:
    """Every step that `text` tells together with metrics, in its order."""
    lines = _lines(text)
    found = _comparable(list(_read_lines(lines, _compiled(pattern), few=len(lines))))
    told = [(line.step, _finite(line.metrics)) for line in found]
    return [(step, metrics) for step, metrics in told if step is not None and metrics]


def _finite(metrics: Found) -> Finite:
    return {name: value for name, value in metrics.items() if value is not None}


def first_epoch(path: str, pattern: str = "") -> int:
    """What the first epoch of a run is called, in the log of its first job: 0 or 1."""
    lines = _read_lines(_lines(_ends(path, SLICE)[0]), _compiled(pattern), few=0)
    return int(next((line.epoch == 1 for line in lines if line.epoch is not None), False))


def span(path: str, pattern: str = "", size: int = SLICE, counted_from: int = 0) -> StepSpan:
    """The first and last step in a log, from its head and its tail only.

    Positions of bars are counted from the epoch that is called `counted_from`.
    """
    own = _compiled(pattern)
    for amount in (min(GLANCE, size), size):
        at_head, at_tail = [
            list(_read_lines(_lines(end), own, counted_from=counted_from))
            for end in _ends(path, amount)
        ]
        # Both ends count in the same way: more of the log would say nothing else.
        if _kind(at_head) == _kind(at_tail) > 0:
            break
    lines = _comparable(at_head + at_tail)
    steps = [line.step for line in lines if line.step is not None]
    last = _last(lines)
    first = steps[0] if steps else None
    return StepSpan(first, last.step, last.epoch, last.metrics, _interval(steps))


def numbers(text: str, pattern: str = "") -> List[Tuple[Optional[float], Optional[int]]]:
    """Every epoch and step that `text` tells, in its order; steps of the most exact kind only."""
    lines = _comparable(list(_read_lines(_lines(text), _compiled(pattern), few=0)))
    # An epoch is a step to its own line; who asks for both wants to know it once.
    named = [line if line.kind > 1 else line._replace(step=None) for line in lines]
    return [(line.epoch, line.step) for line in named]


def _interval(steps: List[int]) -> Optional[int]:
    gaps = (steps[place] - steps[place - 1] for place in range(1, len(steps)))
    return min((gap for gap in gaps if gap > 0), default=None)


def _kind(lines: List[PrintedLine]) -> int:
    return max((line.kind for line in lines), default=0)


def _compiled(pattern: str) -> Optional[Pattern[str]]:
    """The user's expression, or None when there is none or it is wrong.

    The laptop refuses a wrong one when it reads rabaska.toml; a node must not fail for it.
    """
    try:
        return re.compile(pattern) if pattern else None
    except (re.error, OverflowError, RecursionError):
        return None


def _ends(path: str, size: int) -> Tuple[str, str]:
    """The first and the last `size` bytes of a file; the second is empty for a short file."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(size)
            length = os.fstat(stream.fileno()).st_size
            if length <= len(head):
                return _text(head), ""
            stream.seek(max(size, length - size))
            return _text(head), _text(stream.read(size))
    except OSError:
        return "", ""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _lines(text: str) -> List[str]:
    return re.split(r"[\r\n]+", text)


def _read_lines(
    lines: List[str], own: Optional[Pattern[str]], few: int = FEW, counted_from: int = 0
) -> Iterator[PrintedLine]:
    epoch = None  # type: Optional[float]
    for number, raw in enumerate(lines):
        line = raw[:LONGEST_LINE]
        if line.startswith("rabaska: "):
            continue  # our own words, of other jobs perhaps
        found = read_by_pattern(line, own) if own else read_line(line, epoch, counted_from)
        if found.epoch is not None and not epoch_in(line)[0]:
            epoch = found.epoch
        if number >= len(lines) - few:
            found = found._replace(metrics=metrics_in(line))
        if found.kind or found.metrics:
            yield found


def _comparable(lines: List[PrintedLine]) -> List[PrintedLine]:
    """The same lines, with steps of the most exact kind only."""
    kind = _kind(lines)
    return [line if line.kind == kind else line._replace(step=None) for line in lines]


def _last(lines: List[PrintedLine]) -> PrintedProgress:
    step, epoch = None, None
    metrics = {}  # type: Found
    for line in _comparable(lines):
        step = line.step if line.step is not None else step
        epoch = line.epoch if line.epoch is not None else epoch
        metrics.update(line.metrics)
    return PrintedProgress(step, epoch, metrics)
