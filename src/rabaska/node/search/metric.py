"""The metric of a trial: each value that its program reported, in order, across its jobs."""

import os
import re
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from ..record.printed_line import (
    LONGEST_LINE,
    METRIC,
    epoch_in,
    metrics_in,
    read_by_pattern,
    read_line,
)
from ..record.printed_progress import _compiled
from ..record.run_folder import RunFolder

_NAMES = 40  # that are remembered, to name them where the metric is missing
_WORD_BEFORE = re.compile(r"([A-Za-z]\w*)[ \t]+\Z")
_ESCAPED = {"\\t": "\t", "\\n": "\n", "\\\\": "\\"}


class Report(NamedTuple):
    step: Optional[float]
    value: float  # may be nan


def plain(name: str) -> str:
    """One spelling for `val/accuracy`, `val_accuracy` and `Val-Accuracy`."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


class Reports:
    """What a run reported of one metric; `read` looks only at what is new."""

    def __init__(self, run: RunFolder, metric: str, pattern: str = "") -> None:
        self._run = run
        self._metric = plain(metric)
        self._pattern = pattern
        self._logs: Dict[int, _Log] = {}
        self._series: Dict[int, _Series] = {}
        self.names: Set[str] = set()
        self.last: Dict[str, Optional[float]] = {}  # the last value of each metric that it printed

    def read(self) -> List[float]:
        """Every value so far; what a later job did again counts once."""
        found: List[Report] = []
        for job in self._run.jobs():
            log = self._logs.setdefault(job, _Log(self._run.log(job), self._pattern))
            series = self._series.setdefault(job, _Series(_series_path(self._run, job)))
            log.read(self._metric, self.names, self.last)
            series.read(self._metric, self.names)
            found = _joined(found, series.reports or log.reports)
        return [one.value for one in found]


def _series_path(run: RunFolder, job: int) -> str:
    return os.path.join(run.path, "series", "job-{:03d}.tsv".format(job))


def _joined(before: List[Report], after: List[Report]) -> List[Report]:
    """What was reported before the first step of the later job, and then what that reported."""
    first = next((one.step for one in after if one.step is not None), None)
    if first is None:
        return before + after
    kept = [one for one in before if one.step is None or one.step < first]
    return kept + after


class _Lines:
    """The complete lines that a growing file got since the last look."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._offset = 0

    def new(self, ends: bytes = b"\n") -> List[str]:
        try:
            if os.path.getsize(self._path) <= self._offset:
                return []
            with open(self._path, "rb") as stream:
                stream.seek(self._offset)
                data = stream.read()
        except OSError:
            return []
        # A carriage return ends a line of a progress bar.
        last = max(data.rfind(end) for end in (b"\n", b"\r"))
        self._offset += last + 1
        return data[: last + 1].decode("utf-8", "replace").replace("\r", "\n").split("\n")


class _Log:
    def __init__(self, path: str, pattern: str) -> None:
        self._lines = _Lines(path)
        self._own = _compiled(pattern)
        self._epoch: Optional[float] = None
        self._step: Optional[float] = None
        self.reports: List[Report] = []

    def read(self, metric: str, names: Set[str], last: Dict[str, Optional[float]]) -> None:
        for raw in self._lines.new():
            line = raw[:LONGEST_LINE]
            if not line or line.startswith("rabaska: "):
                continue
            self._count(line)
            told = metrics_in(line)
            if len(names) < _NAMES:
                names.update(told)
            last.update(
                (name, value) for name, value in told.items() if name in last or len(last) < _NAMES
            )
            values = _values(line, metric)
            if values:
                self.reports.append(Report(self._step, _number(values[-1])))

    def _count(self, line: str) -> None:
        found = read_by_pattern(line, self._own) if self._own else read_line(line, self._epoch)
        if found.epoch is not None and not epoch_in(line)[0]:
            self._epoch = found.epoch
        if found.step is not None:
            self._step = float(found.step)


def _values(line: str, metric: str) -> List[str]:
    """The values of `metric` in a line; its name may be two words, as in `test accuracy 0.9`."""
    found = []
    for match in METRIC.finditer(line):
        name = plain(match.group(1))
        if name != metric and metric.endswith("_" + name):
            before = _WORD_BEFORE.search(line[: match.start()])
            name = plain(before.group(1) + "_" + name) if before else name
        if name == metric:
            found.append(match.group(2))
    return found


class _Series:
    """`series/job-001.tsv`, as the agent writes it from whatever the program leaves."""

    def __init__(self, path: str) -> None:
        self._lines = _Lines(path)
        self._number = ""
        self.reports: List[Report] = []

    def read(self, metric: str, names: Set[str]) -> None:
        for line in self._lines.new():
            fields = line.split("\t")
            if fields[0] == "=" and len(fields) >= 3:
                name = re.sub(r"\\[tn\\]", lambda found: _ESCAPED[found.group(0)], fields[2])
                if len(names) < _NAMES:
                    names.add(name)
                if plain(name) == metric and not self._number:
                    self._number = fields[1]
            elif self._number and fields[0] == self._number and len(fields) >= 4:
                step = _number(fields[1]) if fields[1] else None
                self.reports.append(Report(step, _number(fields[3])))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def value_of(reports: List[float], take: str, better: int) -> Tuple[Optional[float], str]:
    """The value of a trial, or why it has none."""
    if not reports:
        return None, "its metric never appeared"
    if take == "last":
        last = reports[-1]
        return (None, "its metric is nan") if last != last else (last, "")
    numbers = [one for one in reports if one == one]
    if not numbers:
        return None, "its metric is nan"
    return max(numbers) if better > 0 else min(numbers), ""
