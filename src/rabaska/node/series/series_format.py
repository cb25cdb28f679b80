"""The text in which numbers over time are kept: series/job-001.tsv, vitals/job-001-NODE.tsv.

    # rabaska series 1<TAB>job 1<TAB>began 1763440000.000   the first line
    =<TAB>0<TAB>train/loss<TAB>tensorboard runs/a            a declaration: number, name, source
    0<TAB>120<TAB>31.25<TAB>0.2345                           a point: number, step, seconds, value

Seconds count since the job began. The step is empty where none was told. Of vitals, the source is
the unit. A declaration with an empty name withdraws a number: it was found to be told under another
one. One process appends to a file, so what is new is what lies after an offset, and a line
without its end is not there yet.
"""

import os
import struct
from array import array
from bisect import bisect_left
from typing import Dict, List, Optional, Tuple

from ..files import make_inside, portable, write_all

SERIES = "series"
VITALS = "vitals"
HEAD = "# rabaska series 1\tjob {}\tbegan {:.3f}\n"
LONGEST_NAME = 200  # characters
_SINGLE = struct.Struct("<f")
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"))


def escaped(name: str) -> str:
    """A name as it is written: on one line, between tabs, and never longer than that."""
    name = name[:LONGEST_NAME]
    if name.isprintable() and "\\" not in name:
        return name
    for character, spelled in _ESCAPES:
        name = name.replace(character, spelled)
    return "".join(one if one.isprintable() else "?" for one in name)


def unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    pieces = text.split("\\\\")
    return "\\".join(piece.replace("\\t", "\t").replace("\\n", "\n") for piece in pieces)


def declaration(number: int, name: str, source: str) -> str:
    return "=\t{}\t{}\t{}\n".format(number, escaped(name), escaped(source))


def point(number: int, step: Optional[float], seconds: float, value: float) -> str:
    # Nine digits are all that a number of 32 bits has, as nearly every one in a training.
    short = "%.9g" % value
    spelled = short if float(short) == value or _is_single(value) else repr(value)
    return "%d\t%s\t%.3f\t%s\n" % (number, "" if step is None else step, seconds, spelled)


def _is_single(value: float) -> bool:
    try:
        return bool(_SINGLE.unpack(_SINGLE.pack(value))[0] == value)
    except OverflowError:
        return False


def read_head(line: str) -> Optional[Tuple[int, float]]:
    """The job, and when it began; None for what is no such file."""
    words = line.rstrip("\n").split("\t")
    if len(words) < 3 or not words[0].startswith("# rabaska series "):
        return None
    try:
        return int(words[1].partition(" ")[2]), float(words[2].partition(" ")[2])
    except ValueError:
        return None


class Told:
    """The points of one series that were written, in the order of their steps."""

    def __init__(self) -> None:
        self.steps = array("d")
        self.values = array("d")

    def add(self, step: float, value: float) -> None:
        """Of a later job too, which replaces what was told of these steps."""
        if self.steps and step <= self.steps[-1]:
            keep = bisect_left(self.steps, step)
            del self.steps[keep:], self.values[keep:]
        self.steps.append(step)
        self.values.append(value)

    def at(self, step: float) -> Optional[float]:
        place = bisect_left(self.steps, step)
        there = place < len(self.steps) and self.steps[place] == step
        return self.values[place] if there else None


def read_told(path: str, told: Dict[str, Told]) -> None:
    """Add to `told` what a file holds that has steps."""
    names: Dict[str, str] = {}
    try:
        with open(path, "rb") as stream:
            for raw in stream:
                words = raw.decode("utf-8", "replace").rstrip("\n").split("\t")
                if len(words) != 4 or not raw.endswith(b"\n"):
                    continue
                if words[0] == "=":
                    names[words[1]] = unescaped(words[2])
                elif words[1] and words[0] in names:
                    name = names[words[0]]
                    told.setdefault(name, Told()).add(float(words[1]), float(words[3]))
    except (OSError, ValueError):
        pass  # what cannot be read is told again
    told.pop("", None)


class SeriesFile:
    """Appends to one such file; a file that a killed writer left is continued."""

    def __init__(self, path: str, job: int, began: float) -> None:
        self.path = path
        self.began = began
        self._numbers: Dict[str, int] = {}
        self._next = 0
        self._pending: List[str] = []
        if os.path.exists(path):
            self._continue()
        else:
            self._pending.append(HEAD.format(job, began))

    def _continue(self) -> None:
        with open(self.path, "rb+") as stream:
            data = stream.read()
            stream.truncate(data.rfind(b"\n") + 1)
        lines = data.decode("utf-8", "replace").split("\n")
        head = read_head(lines[0])
        self.began = head[1] if head else self.began
        for line in lines:
            words = line.split("\t")
            if words[0] == "=" and len(words) == 4 and words[1].isdigit():
                self._take_declared(int(words[1]), unescaped(words[2]))

    def _take_declared(self, number: int, name: str) -> None:
        """As the line says it: one that withdraws a number counts none."""
        self._numbers = {known: one for known, one in self._numbers.items() if one != number}
        if name:
            self._numbers[name] = number
        self._next = max(self._next, number + 1)

    def declare(self, name: str, source: str) -> int:
        """The number of a series, which a declaration gives it once."""
        name = name[:LONGEST_NAME]
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = self._next
            self._next += 1
            self._pending.append(declaration(number, name, source))
        return number

    def withdraw(self, number: int) -> None:
        """What was written under this number does not count: its name is empty from now on."""
        self._pending.append(declaration(number, "", ""))
        self._numbers = {name: one for name, one in self._numbers.items() if one != number}

    def add(
        self, name: str, source: str, step: Optional[float], moment: float, value: float
    ) -> None:
        """A point; `moment` in seconds since 1970. It is written by `flush`."""
        self.add_point(self.declare(name, source), step, moment, value)

    def add_point(self, number: int, step: Optional[float], moment: float, value: float) -> None:
        self._pending.append(point(number, step, moment - self.began, value))

    def flush(self) -> int:
        """Write what was added, in one piece; how many bytes."""
        if not self._pending:
            return 0
        data = portable("".join(self._pending)).encode("utf-8", "replace")
        make_inside(os.path.dirname(self.path))
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        size = os.fstat(descriptor).st_size
        try:
            try:
                write_all(descriptor, data)
            finally:
                os.close(descriptor)  # some storage refuses what was written only now
        except OSError:
            os.truncate(self.path, size)  # a part that came through would be written twice
            raise
        self._pending = []
        return len(data)
