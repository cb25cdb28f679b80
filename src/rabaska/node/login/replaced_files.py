"""The plan and the script of a run, replaced by those of one submission if it is taken."""

import os
from typing import Dict, Optional

from .. import files
from ..record.run_folder import RunFolder

_NAMES = ("run.json", "job-more.sh")


def put(run: RunFolder, end: str) -> Dict[str, Optional[bytes]]:
    """Put the files with this end into the place of those of the run; what was there, by path."""
    before = {}  # type: Dict[str, Optional[bytes]]
    for name in _NAMES:
        path = os.path.join(run.path, name)
        if os.path.exists(path + end):
            before[path] = _content(path)
            os.replace(path + end, path)
    files.sync_folder(run.path)
    return before


def take_away(path: str) -> Dict[str, Optional[bytes]]:
    """Remove a file; what was there, by path."""
    content = _content(path)
    files.remove_if_there(path)
    return {} if content is None else {path: content}


def _content(path: str) -> Optional[bytes]:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def put_back(before: Dict[str, Optional[bytes]]) -> None:
    """What was refused is not what the run requests."""
    for path, content in before.items():
        if content is None:
            files.remove_if_there(path)
        else:
            files.write_whole(path, content)


def discard(run: RunFolder, end: str) -> None:
    for name in _NAMES:
        files.remove_if_there(os.path.join(run.path, name + end))
