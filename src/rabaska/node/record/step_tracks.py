"""Where a job began to count: as its log tells, its own text files, the names of what it saved.

A program that goes on from a checkpoint begins where it was saved; one that starts over begins
where the first job did. No program is asked to tell: these are the places where it shows.
"""

import csv
import os
import re
import zlib
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from .. import files
from ..checkpoints import newest_checkpoint
from . import field_types, metrics, printed_progress
from .run_folder import RunFolder

SLICE = 64 * 1024  # bytes at the head and at the tail of a log
_BETWEEN, _PIECE = 16, 4 * 1024  # pieces in between, where counters that begin again show
_TEXTS = (".csv", ".tsv", ".jsonl", ".log", ".txt")
_MOST = 100  # files of a kind that are looked at
_EARLY = 32  # places that are compared one by one
_IN_FULL = 8  # tracks that are recorded with them: the record has to fit on a full disk
WATCHED = "epoch as watched"
# What columns of a table are called, the most telling first.
_COLUMNS = ("epoch", "global_step", "step", "iteration", "iter", "batch", "episode", "round")

Place = List[float]  # an epoch, then a step; compared in this order
Numbers = Sequence[Tuple[Optional[float], Optional[float]]]  # epochs and steps, as they were told


class Track(NamedTuple):
    """One thing that a job counted."""

    what: str  # "epoch", "step in output/metrics.csv": compared with the same of other jobs only
    first: Place
    last: Place
    seen: int  # different places that were seen
    weak: bool = False  # shows that a job started over, and never by itself that it did not
    early: Sequence[float] = ()  # the first places, none left out (see `repeats`)
    inside: Sequence[float] = ()  # the same, of the steps in the first epoch


class Tracks(NamedTuple):
    """What lay in a job's folders before its program started."""

    texts: Dict[str, List[int]]  # path → size in bytes, checksum of its beginning
    saves: Dict[str, List[int]]  # path → size, time of change


def look(carried: str, patterns: List[str]) -> Tracks:
    # Also what no pattern fits: that may be because the patterns are wrong (see `patterns`).
    wanted = newest_checkpoint.DEFAULT_PATTERNS + patterns
    saves = [
        save for save, _ in zip(newest_checkpoint.candidates(carried, wanted), range(10 * _MOST))
    ]
    return Tracks(
        {path: _size_and_sum(os.path.join(carried, path)) for path in _texts(carried)},
        {save.path: [save.size, save.mtime_ns] for save in saves},
    )


def remember(run: RunFolder, job: int, tracks: Tracks) -> None:
    files.write_json(run.found(job), dict(tracks._asdict()))


def recall(run: RunFolder, job: int) -> Tracks:
    try:
        value = files.read_json(run.found(job)) or {}
    except ValueError:
        value = {}  # damaged; then all that is there counts as new
    return Tracks(field_types.pairs(value.get("texts")), field_types.pairs(value.get("saves")))


def of_job(run: RunFolder, job: int, pattern: str, patterns: List[str]) -> List[Track]:
    """All tracks of the job that holds the run, the most telling first."""
    before, carried = recall(run, job), run.carried(job)
    tracks = [of_log(run.log(job), pattern), of_watched(metrics.tail(run, job))]
    tracks += [_of_text(carried, path, before.texts.get(path, [0, 0])) for path in _texts(carried)]
    tracks += _of_names(carried, patterns, before)
    return [track for track in tracks if track is not None]


def of_log(path: str, pattern: str = "") -> Optional[Track]:
    head, rest = _sampled(path)
    if not rest:
        return _track("", printed_progress.numbers(head, pattern))
    # Lines are read one by one, so those of the head come first.
    at_head = len(printed_progress.numbers(head, pattern))
    return _track("", printed_progress.numbers(head + "\n" + rest, pattern), at_head)


def to_json(tracks: List[Track]) -> List[files.Json]:
    short = [track._replace(early=[], inside=[]) for track in tracks[_IN_FULL:]]
    return [dict(track._asdict()) for track in tracks[:_IN_FULL] + short]


def from_json(value: object) -> List[Track]:
    records = value if isinstance(value, list) else []
    fitting = [one for one in records if isinstance(one, dict) and _is_track(one)]
    known = [{name: one[name] for name in Track._fields if name in one} for one in fitting]
    return [Track(**one) for one in known]


def _is_track(value: files.Json) -> bool:
    places = all(field_types.numbers(value.get(name, [])) for name in ("early", "inside"))
    ends = all(field_types.numbers(value.get(name)) and value[name] for name in ("first", "last"))
    return not field_types.misfit(value, field_types.TRACK, ("what", "seen")) and ends and places


def _track(where: str, numbers: Numbers, at_head: Optional[int] = None) -> Optional[Track]:
    """None where nothing is counted, or what is counted begins again within the job.

    After the first numbers, `at_head` of them, some may be missing.
    """
    head = numbers[:at_head]
    counted = [epoch for epoch, _ in numbers if epoch is not None]
    epochs = _rising(counted)
    if epochs is None:
        return None
    if not epochs:
        counted = [float(step) for _, step in numbers if step is not None]
        steps = _rising(counted)
        if not steps:
            return None
        count = sum(step is not None for _, step in head) - (len(counted) - len(steps))
        early = _first_of(steps[:count])
        return Track("step" + where, [steps[0]], [steps[-1]], len(set(steps)), early=early)
    inside = _steps_inside(epochs[0], numbers)
    places = set(epochs) if len(set(epochs)) > 1 else set(inside) or set(epochs)
    count = sum(epoch is not None for epoch, _ in head) - (len(counted) - len(epochs))
    return Track(
        "epoch" + where,
        [epochs[0]] + inside[:1],
        [epochs[-1]],
        len(places),
        early=_first_of(epochs[:count]),
        inside=_first_of(_rising(_steps_inside(epochs[0], head)) or []),
    )


def _first_of(numbers: Sequence[float]) -> List[float]:
    return sorted(set(numbers))[:_EARLY]


def _rising(numbers: List[float]) -> Optional[List[float]]:
    """The numbers without one that stands apart at the beginning; None when they fall again."""
    if len(numbers) > 2 and numbers[0] > numbers[1]:
        numbers = numbers[1:]  # "epoch=100" in a line that repeats the options
    falls = any(after < before for before, after in zip(numbers, numbers[1:]))
    return None if falls else numbers


def _steps_inside(epoch: float, numbers: Numbers) -> List[float]:
    """The steps of the first epoch, whether told in the same line or in those after it."""
    steps, current = [], None  # type: List[float], Optional[float]
    for printed, step in numbers:
        current = printed if printed is not None else current
        if current is not None and current != epoch:
            break
        if step is not None:
            steps.append(float(step))
    return steps


def _sampled(path: str) -> Tuple[str, str]:
    """The head of a log; and pieces of the rest, with its tail, where it is too long to read."""
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size <= 2 * SLICE + _BETWEEN * _PIECE:
                return stream.read().decode("utf-8", "replace"), ""
            head, pieces = stream.read(SLICE).rpartition(b"\n")[0], []
            room = size - 2 * SLICE
            for number in range(_BETWEEN):
                stream.seek(SLICE + room * number // _BETWEEN)
                pieces.append(_lines_of(stream.read(_PIECE)))
            stream.seek(size - SLICE)
            pieces.append(_lines_of(stream.read(SLICE)))
    except OSError:
        return "", ""
    return head.decode("utf-8", "replace"), b"\n".join(pieces).decode("utf-8", "replace")


def _lines_of(piece: bytes) -> bytes:
    """Without the line that is cut at either end."""
    return piece.partition(b"\n")[2].rpartition(b"\n")[0]


def _texts(carried: str) -> List[str]:
    """The program's own tables and logs, relative to what is carried."""
    paths = []  # type: List[str]
    for parent, below, names in os.walk(carried):
        below.sort()
        for name in sorted(names):
            path = os.path.join(parent, name)
            if name.endswith(_TEXTS) and os.path.isfile(path):
                paths.append(os.path.relpath(path, carried))
        if len(paths) >= _MOST:
            break
    return paths[:_MOST]


def _size_and_sum(path: str, most: Optional[int] = None) -> List[int]:
    """Of a file's first bytes, `most` at most: how many they are, and their checksum."""
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size if most is None else most
            return [size, zlib.crc32(stream.read(min(size, SLICE))) & 0xFFFFFFFF]
    except OSError:
        return [0, 0]


def _of_text(carried: str, path: str, before: List[int]) -> Optional[Track]:
    """What a job added to a file.

    What was written anew tells nothing: some programs write their history, whole, at each save.
    """
    whole, begin = os.path.join(carried, path), before[0]
    if begin and _size_and_sum(whole, begin) != before:
        return None
    try:
        with open(whole, "rb") as stream:
            head = stream.read(_PIECE).decode("utf-8", "replace")
            stream.seek(begin)
            text = stream.read(SLICE).decode("utf-8", "replace").rpartition("\n")[0]
    except OSError:
        return None
    where = " in {}".format(path)
    column = _column(head)
    track = _track(where, _of_table(text, *column) if column else printed_progress.numbers(text))
    return None if track is None else track._replace(weak=True)


def _column(head: str) -> Optional[Tuple[int, str, str]]:
    """Which column of a table counts, what it counts, and what parts the columns."""
    line = head.partition("\n")[0]
    for delimiter in (",", "\t", ";"):
        names = [name.strip().strip('"').lower() for name in line.split(delimiter)]
        for wanted in _COLUMNS:
            if len(names) > 1 and wanted in names:
                return names.index(wanted), wanted, delimiter
    return None


def _of_table(text: str, place: int, name: str, delimiter: str) -> Numbers:
    numbers = []  # type: List[Tuple[Optional[float], Optional[float]]]
    # Before Python 3.11, csv refuses the NULs that a crash of the machine leaves.
    rows = csv.reader(text.replace("\0", "").splitlines(), delimiter=delimiter)
    try:
        for row in rows:
            try:
                number = float(row[place])
            except (IndexError, ValueError):
                continue
            if not field_types.is_sensible(number):
                continue
            numbers.append((number, None) if name == "epoch" else (None, number))
    except csv.Error:
        pass  # it is no table from here on
    return numbers


def _of_names(carried: str, patterns: List[str], before: Tracks) -> Iterator[Track]:
    """The numbers in the names of checkpoints that the job wrote, for each kind of name."""
    kinds: Dict[str, Set[float]] = {}
    overwritten = set()  # type: Set[str]
    for save, _ in zip(newest_checkpoint.candidates(carried, patterns), range(10 * _MOST)):
        name = save.path.partition("/")[2] or save.path
        stem = re.sub(r"(\.[A-Za-z][A-Za-z0-9]*)+$", "", name)
        number = re.search(r"\d{1,15}(?!.*\d)", stem)
        if number and before.saves.get(save.path) != [save.size, save.mtime_ns]:
            kind = name[: number.start()] + "#" + name[number.end() :]
            kinds.setdefault(kind, set()).add(float(number.group(0)))
            if save.path in before.saves:
                overwritten.add(kind)
    for kind, numbers in sorted(kinds.items()):
        if len(numbers) == 1 and kind in overwritten:
            continue  # such as resnet50.pt: the one number of a name that never changes
        ends, early = ([min(numbers)], [max(numbers)]), _first_of(list(numbers))
        yield Track("number of " + kind, ends[0], ends[1], len(numbers), weak=True, early=early)


def of_watched(lines: List[files.Json]) -> Optional[Track]:
    """Where a framework that counts for itself says that it began."""
    own = [line for line in metrics.watched(lines) if line.get("first_epoch") is not None]
    # What can go on after any step may begin twice in the same epoch, rightly.
    if not own or own[-1].get("anywhere"):
        return None
    first, made = float(own[-1]["first_epoch"]), int(own[-1]["epochs"])
    early = [first + number for number in range(min(made + 1, _EARLY))]
    return Track(WATCHED, [first], [first + made], made + 1, early=early)
