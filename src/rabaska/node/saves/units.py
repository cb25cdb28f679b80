"""What was saved together: a folder that is one save, or files that were written at one moment.

Who copies a checkpoint copies all of it: no program goes on from weights without their optimizer.
"""

import os
import re
from typing import Dict, Iterable, List, NamedTuple, Sequence

from . import commit, folders, tensorflow
from .order import SAVED_TOGETHER, Checkpoint, names_a_step, step_in

_REWRITTEN = re.compile(r"(last|latest|best)([-_]?(checkpoint|ckpt|chkpt|model))?\Z", re.IGNORECASE)


class Unit(NamedTuple):
    folder: str  # "" when these are single files
    files: Sequence[str]  # with their folder


def libraries(folder: str) -> List[str]:
    """Folders below `folder` that are one checkpoint each, as their library made them."""
    return [found.path for found in folders.below(folder)]


def root(path: str, known: Iterable[str]) -> str:
    """The folder that holds `path` and is one save; "" when there is none."""
    parts = path.split("/")
    above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
    of_library = [one for one in above if one in known or _is_ours(one)]
    if of_library:
        return of_library[0]
    named = [one for one in above if _is_one_save(os.path.basename(one))]
    return named[-1] if named else ""


def _is_ours(path: str) -> bool:
    return commit.step_of(os.path.basename(path)) is not None


def _is_one_save(name: str) -> bool:
    return names_a_step(name) or _REWRITTEN.match(name) is not None


def unit_of(chosen: Checkpoint, found: Sequence[Checkpoint], folder: str, known: List[str]) -> Unit:
    """All that belongs to a checkpoint that lies in `folder`, among those that were `found`."""
    is_folder = os.path.isdir(os.path.join(folder, chosen.path))
    inside = chosen.path if is_folder else root(chosen.path, known)
    if inside:
        return Unit(inside, sorted(_files(os.path.join(folder, inside), inside)))
    if tensorflow.is_one(os.path.join(folder, chosen.path)):
        paths = tensorflow.parts(os.path.join(folder, chosen.path))
        return Unit("", [os.path.relpath(path, folder) for path in paths])
    return Unit("", [chosen.path] + [one.path for one in found if _goes_with(one, chosen)])


def _goes_with(other: Checkpoint, chosen: Checkpoint) -> bool:
    """Whether a file is another part of the same save, such as `optimizer.pt` of `model.pt`."""
    if other.path == chosen.path or os.path.dirname(other.path) != os.path.dirname(chosen.path):
        return False
    places = {step_in(one.path).place for one in (other, chosen)} - {(-1, -1)}
    return len(places) < 2 and abs(other.mtime_ns - chosen.mtime_ns) <= SAVED_TOGETHER


def _files(path: str, prefix: str) -> List[str]:
    found = []  # type: List[str]
    for parent, _, names in os.walk(path):
        inside = os.path.relpath(parent, path)
        above = prefix if inside == "." else os.path.join(prefix, inside)
        found.extend(os.path.join(above, name) for name in names)
    return found


def grouped(paths: Iterable[str], known: List[str]) -> Dict[str, List[str]]:
    """`paths` by the folder that is one save; those of none under ""."""
    groups = {}  # type: Dict[str, List[str]]
    for path in paths:
        groups.setdefault(root(path, known), []).append(path)
    return groups
