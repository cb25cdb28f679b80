"""Numbers that a program prints, with the step that it printed them at."""

import os
import re
from typing import Dict, List, Optional, Pattern, Tuple

from ..record.printed_line import (
    ARGUMENTS,
    LONGEST_LINE,
    LOOKING_BACK,
    METRIC,
    epoch_in,
    is_metric_name,
    read_by_pattern,
    read_line,
)
from .sources import Point, Source

_BREAK = re.compile(rb"[\r\n]+")
# What follows the speed in a bar of tqdm: "12.3it/s, loss=0.4, v_num=0]"
_POSTFIX = re.compile(r"(?:it/s|s/it|\?it/s),\s*(.*?)\]?\s*$")
_PAIR = re.compile(
    r"([A-Za-z][\w./@ -]{0,60}?)=([-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|nan|inf)),?", re.I
)
_NOT_NUMBERS = {"v_num", "step", "epoch", "eta"}
_BEHIND = 8 * 1024 * 1024  # bytes of a log that came since the last look, where it is too much
_NEWEST = 1024 * 1024  # bytes that are read then


class PrintedSeries(Source):
    """The log of a job; lines that a carriage return redraws count like others."""

    kind = "printed"
    is_text = True

    def __init__(self, path: str, offset: int = 0, head: int = 0, pattern: str = "") -> None:
        Source.__init__(self, path, offset, head)
        self._own = _compiled(pattern)
        self._epoch: Optional[float] = None
        self._kind = 0  # of the most exact steps so far
        self._step: Optional[int] = None

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
        told = read_by_pattern(line, self._own) if self._own else read_line(line, self._epoch)
        if told.epoch is not None and not epoch_in(line)[0]:
            self._epoch = told.epoch
        if told.step is not None and told.kind >= self._kind:
            if told.kind > self._kind:
                self._kind = told.kind
            self._step = told.step
        return [Point(name, self._step, None, value) for name, value in printed_numbers(line)]


def printed_numbers(line: str) -> List[Tuple[str, float]]:
    """The metrics of a line, each once: those of a bar's end, whatever they are called."""
    found: Dict[str, float] = {}
    if ARGUMENTS.search(line):
        return []
    for name, value in METRIC.findall(line):
        if is_metric_name(name):
            found[name] = float(value)
    bar = _POSTFIX.search(line)
    for name, value in _PAIR.findall(bar.group(1)) if bar else []:
        name = name.strip()
        if name.lower() not in _NOT_NUMBERS and value.count(".") < 2:
            found[name] = float(value)
    return list(found.items())


def _compiled(pattern: str) -> Optional[Pattern[str]]:
    try:
        return re.compile(pattern) if pattern else None
    except (re.error, OverflowError, RecursionError):
        return None
