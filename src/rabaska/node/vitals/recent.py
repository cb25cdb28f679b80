"""What the vitals of a job were in its last minutes: a mean for each series of each node."""

import os
import re
from typing import Dict, List, Tuple

from ..series.series_format import VITALS, read_head, unescaped

TAIL = 96 * 1024  # bytes: about ten minutes of a node with eight GPUs
HEAD = 8 * 1024
_WINDOW = 600.0  # seconds
FOREVER = float("inf")

Means = Dict[str, float]


def recent(
    run_folder: str, job: int, since: float = 0.0, until: float = FOREVER
) -> Dict[str, Means]:
    """By node; of what was written between two moments, or of all of it where nothing was."""
    folder = os.path.join(run_folder, VITALS)
    start = "job-{:03d}-".format(job)
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith(start))
    except OSError:
        return {}
    found = {}
    for name in names:
        if re.match(r".+\.tsv\Z", name):
            means = _means(os.path.join(folder, name), since, until)
            if means:
                found[name[len(start) : -len(".tsv")]] = means
    return found


def _means(path: str, since: float, until: float) -> Means:
    head, tail = _pieces(path)
    opened = read_head(head[0]) if head else None
    if opened is None:
        return {}
    names = {}
    for line in head + tail:
        if line.startswith("=\t") and line.count("\t") == 3:
            _, number, name, _ = line.split("\t")
            names[number] = unescaped(name)
    points = _points(tail)
    if not points:
        return {}
    began = opened[1]
    last = min(max(seconds for _, seconds, _ in points), until - began)
    start = max(since - began, last - _WINDOW)
    kept = [one for one in points if start <= one[1] <= last] or points
    # What a look finds is of the time before it: the first one after `since` may lie in both.
    moments = sorted({seconds for _, seconds, _ in kept})
    if len(moments) > 2:
        kept = [one for one in kept if one[1] > moments[0]]
    sums = {}  # type: Dict[str, List[float]]
    for number, _, value in kept:
        sums.setdefault(names.get(number, ""), []).append(value)
    means = {name: sum(values) / len(values) for name, values in sums.items() if name}
    looks = len({seconds for _, seconds, _ in kept})
    for name, values in sums.items():
        if " throttled by " in name:  # written only while it is so
            means[name] = len(values) / looks
    means["looks"] = float(looks)
    return means


def _pieces(path: str) -> Tuple[List[str], List[str]]:
    try:
        with open(path, "rb") as stream:
            head = stream.read(HEAD)
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - TAIL))
            tail = stream.read(TAIL)
    except OSError:
        return [], []
    ended = tail[: tail.rfind(b"\n") + 1]
    if size > TAIL:
        ended = ended[ended.find(b"\n") + 1 :]
    return _lines(head), _lines(ended)


def _lines(data: bytes) -> List[str]:
    return data.decode("utf-8", "replace").split("\n")


def _points(lines: List[str]) -> List[Tuple[str, float, float]]:
    found = []
    for line in lines:
        words = line.split("\t")
        if len(words) != 4 or not words[0].isdigit():
            continue
        try:
            found.append((words[0], float(words[2]), float(words[3])))
        except ValueError:
            continue
    return found
