"""Numbers that a program prints, with the step that it printed them at."""

import os
import re
from typing import Dict, List, Optional, Pattern, Tuple

from ..record import printed_progress
from ..record.printed_line import (
    ARGUMENTS,
    LONGEST_LINE,
    LOOKING_BACK,
    METRIC,
    PrintedLine,
    epoch_in,
    is_metric_name,
    read_by_pattern,
    read_line,
)
from .sources import Point, Source

_BREAK = re.compile(rb"[\r\n]+")
# What follows the speed in a bar of tqdm: "12.3it/s, loss=0.4, v_num=0]"
_POSTFIX = re.compile(r"(?:it/s|s/it|\?it/s),\s*([^\]]*)")
_PAIR = re.compile(
    r"([A-Za-z][\w./@ -]{0,60}?)=([-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|nan|inf)),?", re.I
)
_NOT_NUMBERS = {"v_num", "step", "epoch", "eta"}
# "[640/60000 (1%)]": how much of an epoch is done, in samples, as PyTorch's MNIST example tells it
_PART = re.compile(r"\[\s*(\d{1,12})/(\d{1,12})\s*\(\s*\d{1,3}(?:\.\d*)?\s*%\s*\)\s*\]")
# "val loss 0.3", "Test set: loss 0.3, accuracy 0.9": what the numbers behind it were measured on
_SPLIT = re.compile(
    r"(?<![\w./-])(train|val|test|eval|dev)(?:ing|id|idation|uation)?(?![\w./-])", re.I
)
_OWN_SPLIT = re.compile(r"(?:^|[^a-z])(?:train|val|test|eval|dev)", re.I)
_NO_SPLIT = ("lr", "rate")  # of the training alone
_BEHIND = 8 * 1024 * 1024  # bytes of a log that came since the last look, where it is too much
_NEWEST = 1024 * 1024  # bytes that are read then


class PrintedSeries(Source):
    """The log of a job; lines that a carriage return redraws count like others."""

    kind = "printed"
    is_text = True

    def __init__(
        self, path: str, offset: int = 0, head: int = 0, pattern: str = "", first_log: str = ""
    ) -> None:
        """`first_log` is that of the run's first job, which says what the first epoch is called."""
        Source.__init__(self, path, offset, head)
        self._own, self._pattern = _compiled(pattern), pattern
        self._first_log = first_log or path
        self._counted_from: Optional[int] = None
        self._epoch: Optional[float] = None
        self._kind = 0  # of the most exact steps so far
        self._step: Optional[float] = None

    def read(self, most: int = _BEHIND) -> List[Point]:
        """What is new; of a program that prints faster than anybody reads, the end of it."""
        try:
            size = os.stat(self.path).st_size
        except OSError:
            return []
        if size - self.offset > _BEHIND:
            self.offset = size - _NEWEST
        return Source.read(self, most)

    def points(self, data: bytes) -> List[Point]:
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end and len(data) > LONGEST_LINE * 16:
            end = len(data)
        self.offset += end
        found: List[Point] = []
        for line in _BREAK.split(data[:end]):
            found += self._line(line[: LONGEST_LINE * 4].decode("utf-8", "replace"))
        return found

    def _line(self, line: str) -> List[Point]:
        line = line[:LONGEST_LINE]
        if not line or line.startswith("rabaska: ") or LOOKING_BACK.search(line):
            return []
        told = self._told(line)
        if told.epoch is not None and not epoch_in(line)[0]:
            self._epoch = told.epoch
        if told.step is not None and told.kind >= self._kind:
            if told.kind > self._kind:
                self._kind = told.kind
            self._step = _place(told, line)
        return [Point(name, self._step, None, value) for name, value in printed_numbers(line)]

    def _told(self, line: str) -> PrintedLine:
        if self._own:
            return read_by_pattern(line, self._own)
        told = read_line(line, self._epoch, self._counted_from or 0)
        if told.kind != 2 or self._counted_from is not None:
            return told
        # The first bar: from here on its epochs are counted as `status` counts them.
        self._counted_from = printed_progress.first_epoch(self._first_log, self._pattern)
        return read_line(line, self._epoch, self._counted_from)


def _place(told: PrintedLine, line: str) -> Optional[float]:
    """The step; where only epochs are told, also the part of one: `'epoch': 0.25` or `(25%)`."""
    if told.kind != 1 or told.epoch is None:
        return told.step
    part = _PART.search(line)
    done, total = (int(part.group(1)), int(part.group(2))) if part else (0, 0)
    epoch = round(told.epoch + (done / total if total else 0.0), 6)
    return int(epoch) if epoch == int(epoch) else epoch


def printed_numbers(line: str) -> List[Tuple[str, float]]:
    """The metrics of a line, each once: those of a bar's end, whatever they are called."""
    found: Dict[str, float] = {}
    if ARGUMENTS.search(line):
        return []
    splits = [(one.end(), one.group(1).lower()) for one in _SPLIT.finditer(line)]
    for metric in METRIC.finditer(line):
        name, value = metric.groups()
        if is_metric_name(name):
            before = [split for end, split in splits if end <= metric.start(1)][-1:]
            found[_qualified(name, before)] = float(value)
    bar = _POSTFIX.search(line)
    for name, value in _PAIR.findall(bar.group(1)) if bar else []:
        name = name.strip()
        if name.lower() not in _NOT_NUMBERS and value.count(".") < 2:
            found[name] = float(value)
    return list(found.items())


def _qualified(name: str, split: List[str]) -> str:
    """`val_loss` for what a line calls "val loss": it is another series than the training's."""
    if not split or _OWN_SPLIT.search(name) or name.lower().endswith(_NO_SPLIT):
        return name
    return split[0] + "_" + name


def _compiled(pattern: str) -> Optional[Pattern[str]]:
    try:
        return re.compile(pattern) if pattern else None
    except (re.error, OverflowError, RecursionError):
        return None
