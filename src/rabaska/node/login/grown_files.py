"""Event files of runs that grow: the bytes that a reader elsewhere does not have yet.

`grown` reads one JSON line, a list of {"path": RUNFOLDER, "have": {NAME: BYTES}}, and prints for
each file of TensorBoard that has more a line and the bytes it tells of:

    {"run": 0, "name": "output/a/events.out.tfevents.…", "at": 120, "bytes": 500}
    <500 bytes>
    {"end": true, "more": false}

`run` counts the list from 0. A file that became shorter comes from its beginning, at 0. No answer
is longer than MOST; what is left is `more`, for the next one.
"""

import json
import os
import stat
import sys
from typing import BinaryIO, Dict, Iterator, List, Tuple

from ..files import native_value
from ..record.run_folder import RunFolder

MOST = 64 << 20  # bytes of one answer
MARK = "tfevents"  # in the name of every event file
_CHUNK = 1 << 20


def main(_words: List[str]) -> int:
    left, more = MOST, False
    for number, question in enumerate(native_value(json.loads(sys.stdin.readline()))):
        for name, path, at, size in _grown(question["path"], question["have"]):
            told = {"run": number, "name": name}  # type: Dict[str, object]
            count = min(size - at, left)
            more = more or count < size - at
            left -= _give(path, told, at, count, sys.stdout.buffer)
    _say({"end": True, "more": more}, sys.stdout.buffer)
    return 0


def _grown(folder: str, have: Dict[str, int]) -> Iterator[Tuple[str, str, int, int]]:
    """Files with more in them than there is elsewhere: name, path, where it begins, size."""
    run = RunFolder(folder)
    place = run.place(run.holder())
    for name, path, size in sorted(event_files(place)):
        known = have.get(name)
        if known is None or known > size:
            yield name, path, 0, size
        elif known < size:
            yield name, path, known, size


def event_files(place: str) -> Iterator[Tuple[str, str, int]]:
    """Name below `place`, path and size of each."""
    for parent, _, names in os.walk(place):
        for name in names:
            path = os.path.join(parent, name)
            if MARK not in name:
                continue
            try:
                found = os.lstat(path)
            except OSError:
                continue  # removed meanwhile
            if stat.S_ISREG(found.st_mode):
                yield os.path.relpath(path, place), path, found.st_size


def _give(path: str, told: Dict[str, object], at: int, count: int, output: BinaryIO) -> int:
    """Print so much of a file, or what there is of it: how much it was."""
    done = 0
    try:
        with open(path, "rb") as stream:
            stream.seek(at)
            while done < count:
                data = stream.read(min(count - done, _CHUNK))
                if not data:
                    break
                _say(dict(told, at=at + done, bytes=len(data)), output)
                output.write(data)
                done += len(data)
    except OSError:
        pass  # it cannot be read now; the next question asks again
    return done


def _say(value: Dict[str, object], output: BinaryIO) -> None:
    output.write(json.dumps(value).encode("ascii") + b"\n")
    output.flush()
