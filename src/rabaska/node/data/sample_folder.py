"""`sample-folder FOLDER`: how many files, how large, and how long one takes to read."""

import json
import os
import time
import zlib
from typing import Any, Dict, List

from .blocks import forget

_PATIENCE = 10.0  # seconds for listing, and as many for reading
_MOST_LISTED = 10**6
_SAMPLED = 300
_PIECE = 2**20


def main(argv: List[str]) -> int:
    print(json.dumps(sampled(argv[0])))
    return 0


def sampled(folder: str) -> Dict[str, Any]:
    """`complete` is false when there are more files than were listed."""
    paths, complete = _listed(folder)
    chosen = paths[:: max(1, len(paths) // _SAMPLED)]
    sizes, before, after, spent = [], 0, 0, 0.0
    end = time.monotonic() + _PATIENCE
    for path in chosen:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        try:
            forget(descriptor, 0, 0)
            begun = time.perf_counter()
            content = os.read(descriptor, _PIECE)
            spent += time.perf_counter() - begun
            sizes.append(os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)
        before, after = before + len(content), after + len(zlib.compress(content, 1))
        if time.monotonic() > end:
            break
    mean = sum(sizes) / len(sizes) if sizes else 0.0
    return {
        "files": len(paths),
        "bytes": int(mean * len(paths)),
        "seconds_per_file": spent / len(sizes) if sizes else 0.0,
        "shrinks_to": after / before if before else 1.0,
        "complete": complete,
    }


def _listed(folder: str) -> Any:
    if os.path.isfile(folder):
        return [folder], True
    end = time.monotonic() + _PATIENCE
    paths, waiting = [], [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.is_file():
                        paths.append(entry.path)
        except OSError:
            continue
        if len(paths) >= _MOST_LISTED or time.monotonic() > end:
            return paths, not waiting
    return paths, True
