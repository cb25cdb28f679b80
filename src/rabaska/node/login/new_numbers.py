"""What is new in a run's files of numbers: the bytes after those that the asker has."""

import os
import zlib
from base64 import b64encode
from typing import Any, Dict, List

from ..record.run_folder import RunFolder
from ..series.series_format import SERIES, VITALS

Json = Dict[str, Any]

MOST = 8 * 1024 * 1024  # bytes in one answer, of all runs; what is left comes with the next
_WORTH_PACKING = 2048  # bytes


class Allowance:
    """How many bytes this answer may still carry."""

    def __init__(self, left: int = MOST) -> None:
        self.left = left


def new_numbers(run: RunFolder, have: Dict[str, int], allowance: Allowance) -> Json:
    """By file: {"at": offset, "text" or "packed": …, "left": bytes that were left out}.

    Only complete lines are sent. A file that became shorter is sent from its beginning.
    """
    found: Json = {}
    for name in _files(run):
        path = os.path.join(run.path, *name.split("/"))
        try:
            size = os.stat(path).st_size
            start = have.get(name, 0)
            start = start if 0 <= start <= size else 0
            if size > start or start != have.get(name, 0):
                piece = _piece(path, start, allowance)
                if piece is not None:
                    found[name] = piece
        except OSError:
            continue  # it was removed, or cannot be read now
    return found


def _files(run: RunFolder) -> List[str]:
    names: List[str] = []
    for folder in (SERIES, VITALS):
        try:
            listed = os.listdir(os.path.join(run.path, folder))
        except OSError:
            continue
        names += sorted(folder + "/" + name for name in listed if name.endswith(".tsv"))
    return names


def _piece(path: str, start: int, allowance: Allowance) -> Any:
    with open(path, "rb") as stream:
        stream.seek(start)
        data = stream.read(max(0, allowance.left))
        size = os.fstat(stream.fileno()).st_size
    is_cut = len(data) >= allowance.left
    data = data[: data.rfind(b"\n") + 1]
    left = size - start - len(data) if is_cut else 0
    if not data and not left:
        return None
    allowance.left -= len(data)
    told: Json = {"at": start, "left": left}
    if len(data) < _WORTH_PACKING:
        told["text"] = data.decode("utf-8", "replace")
    else:
        told["packed"] = b64encode(zlib.compress(data, 6)).decode("ascii")
    return told
