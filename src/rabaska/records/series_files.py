"""Numbers over time, read from a run's folder or from what this computer has of it.

`series/job-001.tsv` holds what the program reported, `vitals/job-001-NODE.tsv` what its node did;
`rabaska.node.series.series_format` says how. They only grow, so a reader that stays goes on where
it stopped.
"""

import math
import os
import re
import zlib
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rabaska.domain.curves import Curve, joined
from rabaska.node.series.series_format import SERIES, VITALS, escaped, read_head, unescaped
from rabaska.records.home import Home
from rabaska.records.read_numbers import WORTH, ReadNumbers, keep, kept
from rabaska.records.run_index import RunRecord, digest

MOST_NAMES = 5000  # series of a job that are kept: a program may give each its own name
_AT_ONCE = 4 * 1024 * 1024  # bytes
_MOST_PACKED = 64 * 1024 * 1024  # bytes: more than a cluster sends at once
FILE = re.compile(r"(series|vitals)/job-\d{1,9}(-[A-Za-z0-9._-]{1,100})?\.tsv")


def numbers_folder(home: Home, record: RunRecord) -> Path:
    """Where the numbers of a run are on this computer: its own folder, or a copy."""
    return Path(record.path) if record.cluster == "here" else copy_folder(home, record)


def copy_folder(home: Home, record: RunRecord) -> Path:
    """What this computer keeps of a run that was looked at."""
    return home.live / f"{record.name}-{digest(record)}"


def remove_copy(home: Home, record: RunRecord) -> None:
    """Of a run that is no longer in the list."""
    import shutil

    shutil.rmtree(copy_folder(home, record), ignore_errors=True)


class JobNumbers:
    """The series of one file, as far as it was read."""

    def __init__(self, path: str, copy: str = "") -> None:
        self.path = path
        self._copy = copy  # where what was read is kept; "": nowhere
        self._kept = 0  # bytes of the file whose content is in it
        self.curves: dict[str, Curve] = {}
        self._by_number: dict[bytes, Curve] = {}
        self._offset = 0
        self._began = 0.0

    def read_on(self) -> bool:
        """Read what is new; whether anything is. A file that was replaced is read again."""
        before = self._offset
        with suppress(OSError), open(self.path, "rb") as stream:  # noqa: PTH123
            if os.fstat(stream.fileno()).st_size < self._offset:
                self.curves, self._by_number, self._offset = {}, {}, 0
            if not self._offset and self._copy:
                self._take_copy()
            stream.seek(self._offset)
            while lines := _whole_lines(stream.read(_AT_ONCE)):
                self._read_lines(lines)
                self._offset += len(lines)
                stream.seek(self._offset)
        if self._copy and self._offset - self._kept >= max(WORTH, self._kept // 8):
            read = ReadNumbers(self._offset, self._began, self.curves, self._by_number)
            keep(self._copy, self.path, read)
            self._kept = self._offset
        return self._offset != before

    def _take_copy(self) -> None:
        read = kept(self._copy, self.path)
        if read is not None:
            self.curves, self._by_number = read.curves, read.by_number
            self._offset, self._began, self._kept = read.offset, read.began, read.offset

    def _read_lines(self, text: bytes) -> None:
        curves, began = self._by_number, self._began
        for line in text.split(b"\n"):
            try:
                number, step, seconds, value = line.split(b"\t")
                curve = curves[number]
                steps = curve.steps
                told = float(step) if step else math.nan
                if steps and not told > steps[-1] and not _goes_on(curve, told, value):
                    continue
                moment, amount = began + float(seconds), float(value)
            except (ValueError, KeyError):
                self._read_other(line)
                began = self._began
                continue
            steps.append(told)
            curve.times.append(moment)
            curve.values.append(amount)

    def _read_other(self, line: bytes) -> None:
        if line.startswith(b"=\t"):
            self._declare(line.decode("utf-8", "replace").split("\t"))
        elif line.startswith(b"# "):
            head = read_head(line.decode("utf-8", "replace"))
            self._began = head[1] if head else self._began

    def _declare(self, words: list[str]) -> None:
        if len(words) != 4 or len(self.curves) >= MOST_NAMES:
            return
        if not words[2]:  # withdrawn
            curve = self._by_number.pop(words[1].encode(), None)
            if curve is not None:
                self.curves.pop(curve.name, None)
            return
        # Again as it would be written: a cluster may send anything.
        name, source = (unescaped(escaped(unescaped(word))) for word in words[2:])
        self._by_number[words[1].encode()] = self.curves.setdefault(name, Curve(name, source))


class RunNumbers:
    """All numbers of a run, joined over its jobs; `refresh` reads what is new."""

    def __init__(self, run_folder: Path, copies: Path | None = None) -> None:
        self._folder = str(run_folder)
        self._copies = copies  # see `read_numbers`
        self._files: dict[str, JobNumbers] = {}
        self._series: dict[str, Curve] | None = None
        self._vitals: dict[str, dict[str, Curve]] | None = None

    def refresh(self) -> bool:
        """Whether anything is new."""
        changed = False
        for name in _names(self._folder):
            if name not in self._files:
                copy = f"{self._copies}/{name.replace('/', '-')}" if self._copies else ""
                self._files[name] = JobNumbers(f"{self._folder}/{name}", copy)
            changed |= self._files[name].read_on()
        if changed:
            self._series = self._vitals = None
        return changed

    @property
    def series(self) -> dict[str, Curve]:
        """What the program reported, by name."""
        if self._series is None:
            jobs = [self._files[name] for name in self._of(SERIES)]
            self._series = _joined_all(jobs)
        return self._series

    @property
    def vitals(self) -> dict[str, dict[str, Curve]]:
        """What each node measured, by its name."""
        if self._vitals is None:
            nodes: dict[str, list[JobNumbers]] = {}
            for name in self._of(VITALS):
                node = name.removesuffix(".tsv").split("-", 2)[-1]
                nodes.setdefault(node, []).append(self._files[name])
            self._vitals = {node: _joined_all(jobs) for node, jobs in sorted(nodes.items())}
        return self._vitals

    def _of(self, folder: str) -> list[str]:
        names = [name for name in self._files if name.startswith(f"{folder}/")]
        return sorted(names, key=lambda name: (int(name.split("-")[1].split(".")[0]), name))


def read_series(run_folder: Path) -> dict[str, Curve]:
    numbers = RunNumbers(run_folder)
    numbers.refresh()
    return numbers.series


def read_vitals(run_folder: Path) -> dict[str, dict[str, Curve]]:
    numbers = RunNumbers(run_folder)
    numbers.refresh()
    return numbers.vitals


def held(folder: Path) -> dict[str, int]:
    """How many bytes of each file are here: what a cluster need not send again."""
    return {name: os.stat(f"{folder}/{name}").st_size for name in _names(str(folder))}  # noqa: PTH116


def take(folder: Path, new: Mapping[str, Any]) -> int:
    """Write what arrived behind what is here; how many bytes are still to come."""
    left = 0
    for name, piece in new.items():
        if FILE.fullmatch(name):
            _append(folder / name, piece)
            left += max(0, piece["left"])
    return left


def _append(file: Path, piece: Mapping[str, Any]) -> None:
    data = piece.get("text", "").encode()
    if "packed" in piece:
        try:
            data = zlib.decompressobj().decompress(b64decode(piece["packed"]), _MOST_PACKED)
        except (ValueError, zlib.error):
            return  # it is asked for again
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "ab") as stream:  # noqa: PTH123
        size = os.fstat(stream.fileno()).st_size
        if piece["at"] == 0 and size:
            stream.truncate(0)  # it is another file than it was
        elif piece["at"] != size:
            return  # another command of this computer was quicker
        stream.write(data)


def _names(folder: str) -> list[str]:
    found = []
    for part in (SERIES, VITALS):
        try:
            listed = os.listdir(f"{folder}/{part}")  # noqa: PTH208 - asked every second
        except OSError:
            continue
        found += [f"{part}/{name}" for name in listed if FILE.fullmatch(f"{part}/{name}")]
    return found


def _goes_on(curve: Curve, step: float, value: bytes) -> bool:
    """Whether a point is a new one, whose step is not behind the last; nan: it has none.

    What was told before the first step, as a best value so far, has no place among the steps.
    """
    last = curve.steps[-1]
    if math.isnan(last):
        if not math.isnan(step):
            del curve.steps[:], curve.times[:], curve.values[:]
        return True
    if step == last:
        curve.values[-1] = float(value)
    return False


def _whole_lines(chunk: bytes) -> bytes:
    return chunk[: chunk.rfind(b"\n") + 1]


def _joined_all(jobs: list[JobNumbers]) -> dict[str, Curve]:
    names = dict.fromkeys(name for job in jobs for name in job.curves)
    return {
        name: joined([job.curves[name] for job in jobs if name in job.curves]) for name in names
    }
