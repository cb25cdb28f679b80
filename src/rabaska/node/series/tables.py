"""Numbers of tables and lists that training programs write as text.

CSV as Lightning's and Keras's `CSVLogger` write it, lines of JSON, and the `trainer_state.json` of
Hugging Face's Trainer.
"""

import csv
import json
import os
import re
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .sources import Point, Source, complete_lines

# The first of these that a line has is its step.
STEPS = ("global_step", "step", "steps", "iteration", "iter", "it", "num_updates", "timesteps",
         "total_timesteps", "batch", "epoch", "epochs")  # fmt: skip
_PARTED = ("epoch", "epochs")  # 0.25 is a quarter of the first one
_TIMES = ("time", "timestamp", "wall_time", "walltime", "_timestamp", "date", "wall time")
_NOT_NUMBERS = set(STEPS) | set(_TIMES) | {"index", "", "seed", "rank", "pid", "job"}
_PLAUSIBLE = (9e8, 4e9)  # seconds since 1970
_LONGEST_LINE = 1 << 20  # bytes
_MOST_COLUMNS = 2000
_NUMBER = re.compile(
    r"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|nan|inf(inity)?)\Z", re.I
)


def number(value: Any) -> Optional[float]:
    """A number, or a text that is one; None for anything else."""
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, (int, float)):
            return float(value)
        if isinstance(value, str) and _NUMBER.match(value.strip()):
            return float(value)
    except OverflowError:
        pass
    return None


def _step(row: Dict[str, Any]) -> Optional[float]:
    for name in STEPS:
        told = number(row.get(name))
        if told is not None and abs(told) < 1e18:
            is_part = name in _PARTED and told != int(told)
            return told if is_part else int(told)
    return None


def _moment(row: Dict[str, Any]) -> Optional[float]:
    for name in _TIMES:
        told = number(row.get(name))
        if told is not None and _PLAUSIBLE[0] < told < _PLAUSIBLE[1]:
            return told
    return None


def row_points(row: Dict[str, Any]) -> List[Point]:
    """Every number of a row but those that say where it belongs; none of a row without a step."""
    lowered = {name.strip().lower(): value for name, value in row.items()}
    step, moment = _step(lowered), _moment(lowered)
    if step is None:
        return []
    found = []
    for name, value in list(row.items())[:_MOST_COLUMNS]:
        name = name.strip()
        if isinstance(value, dict):
            inner = [(name + "/" + str(key), number(one)) for key, one in value.items()]
        else:
            inner = [(name, number(value))]
        if name.lower() not in _NOT_NUMBERS:
            found += [Point(key, step, moment, one) for key, one in inner if one is not None]
    return found


class CsvTable(Source):
    """A table whose first line names its columns, one of them a step."""

    kind = "csv"
    is_text = True

    def __init__(self, path: str, offset: int = 0, head: int = 0) -> None:
        Source.__init__(self, path, offset, head)
        self._columns: List[str] = []
        self._comma = ","

    def begin(self) -> None:
        self._columns = []

    def points(self, data: bytes) -> List[Point]:
        lines = complete_lines(data)
        if not self._columns:
            self._columns, self._comma = columns_of(self.path)
        found: List[Point] = []
        first = self.offset == 0
        text = lines.decode("utf-8", "replace").replace("\0", "")
        self.offset += len(lines)
        if not lines and len(data) > _LONGEST_LINE:
            self.offset += len(data)
        for values in _rows(text, self._comma):
            if first or len(values) != len(self._columns):
                first = False
                continue  # its names, or a line that another process broke
            found += row_points(dict(zip(self._columns, values)))
        return found


def _rows(text: str, comma: str) -> Iterator[List[str]]:
    """The rows of a table; one with a field that no reader of CSV takes is left out."""
    rows = csv.reader(text.splitlines(), delimiter=comma)
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except csv.Error:
            continue


def columns_of(path: str) -> Tuple[List[str], str]:
    """The names in the first line of a table, and what separates them; none if it is no log."""
    with open(path, "rb") as stream:
        line = stream.readline(64 * 1024)
    if not line.endswith(b"\n"):
        return [], ","
    text = line.decode("utf-8", "replace").lstrip("\ufeff").strip()
    comma = next((one for one in "\t;," if one in text), ",")
    try:
        names = [name.strip() for name in next(csv.reader([text], delimiter=comma))]
    except (csv.Error, StopIteration):
        return [], ","
    is_log = any(name.lower() in STEPS for name in names) and len(names) > 1
    return (names if is_log and len(names) <= _MOST_COLUMNS else []), comma


class JsonLines(Source):
    """A file with an object on each line."""

    kind = "json lines"
    is_text = True

    def points(self, data: bytes) -> List[Point]:
        lines = complete_lines(data)
        self.offset += len(lines) if lines or len(data) < _LONGEST_LINE else len(data)
        found: List[Point] = []
        for line in lines.split(b"\n"):
            row = json_object(line)
            if row is not None:
                found += row_points(row)
        return found


def json_object(line: bytes) -> Optional[Dict[str, Any]]:
    if not line.lstrip().startswith(b"{") or len(line) > _LONGEST_LINE:
        return None
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class TrainerState(Source):
    """`trainer_state.json`, which holds all that was logged so far and is written as a whole."""

    kind = "trainer_state.json"

    def read(self, most: int = 0) -> List[Point]:
        try:
            status = os.stat(self.path)
            seen = (status.st_size, status.st_mtime_ns, status.st_ino)
            if seen == self._seen or status.st_size > 256 * 1024 * 1024:
                return []
            with open(self.path, "rb") as stream:
                data = stream.read()
        except OSError:
            return []
        self._seen = seen
        return self.points(data)

    def points(self, data: bytes) -> List[Point]:
        try:
            history = json.loads(data.decode("utf-8", "replace"))["log_history"]
            rows = [row for row in history if isinstance(row, dict)]
        except (ValueError, RecursionError, KeyError, TypeError):
            return []  # it is being written; the next look finds it
        return [point for row in rows for point in row_points(row)]


def is_rows(path: str) -> bool:
    """Whether the first line of a file is an object with a step and another number."""
    with open(path, "rb") as stream:
        line = stream.readline(_LONGEST_LINE)
    row = json_object(line) if line.endswith(b"\n") else None
    return row is not None and bool(row_points(row))
