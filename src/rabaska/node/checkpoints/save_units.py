"""What was saved together: a folder that is one save, or files that were written at one moment.

Who copies a checkpoint copies all of it: no program goes on from weights without their optimizer.
"""

import os
import re
import stat
from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Sequence

from . import commit, folder_formats, tensorflow
from .checkpoint_names import step_in
from .order import SAVED_TOGETHER, Candidate

# Names that libraries and programs give to one save: `epoch_3`, `global_step500`, `ckpt-12`,
# `epoch=3-step=400.ckpt`. A folder for a training, `resnet_epochs100` or `step1_pretrain`, is none.
_COUNTED = r"(global[-_]?step|step|epoch|iter|iteration|checkpoint|ckpt|chkpt)[-_=]?\d+"
_OF_A_STEP = re.compile(
    r"((model|state|weights|checkpoint|ckpt|chkpt)[-_])?{0}([-_]{0})*(\.ckpt)?\Z".format(_COUNTED),
    re.IGNORECASE,
)
_REWRITTEN = re.compile(r"(last|latest|best)([-_]?(checkpoint|ckpt|chkpt|model))?\Z", re.IGNORECASE)


class Unit(NamedTuple):
    folder: str  # "" when these are single files
    files: Sequence[str]  # with their folder


class Known(NamedTuple):
    """What the content of folders tells; of the others only their names tell."""

    of_libraries: Sequence[str]  # each is one save
    mixed: FrozenSet[str]  # called like one save, but what they hold is none


def known(folder: str) -> Known:
    """Which folders below `folder` are one checkpoint, or are not, whatever their names say."""
    of_libraries = [found.path for found in folder_formats.below(folder)]
    mixed = set()
    for parent, inside, _ in os.walk(folder):
        for path in (os.path.join(parent, name) for name in inside if _is_one_save(name)):
            if _holds_several(path):
                mixed.add(os.path.relpath(path, folder))
    return Known(of_libraries, frozenset(mixed))


def _holds_several(folder: str) -> bool:
    """Whether files that differ in their steps only were written one after another.

    Parts of one save may be numbered, too; these are written at about the same time.
    """
    families = {}  # type: Dict[str, List[int]]
    try:
        names = os.listdir(folder)
    except OSError:
        return False  # a program that runs has removed it
    for name in names:
        try:
            status = os.stat(os.path.join(folder, name))
        except OSError:
            continue  # gone since it was listed, or a link to nowhere
        step = step_in(name)
        if step.place != (-1, -1) and stat.S_ISREG(status.st_mode):
            families.setdefault(step.family, []).append(status.st_mtime_ns)
    return any(max(times) - min(times) > SAVED_TOGETHER for times in families.values())


def root(path: str, known: Known) -> str:
    """The folder that holds `path` and is one save; "" when there is none."""
    parts = path.split("/")
    above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
    of_library = [one for one in above if one in known.of_libraries or _is_ours(one)]
    if of_library:
        return of_library[0]
    named = [one for one in above if _is_one_save(os.path.basename(one))]
    return named[-1] if named and named[-1] not in known.mixed else ""


def _is_ours(path: str) -> bool:
    return commit.step_of(os.path.basename(path)) is not None


def _is_one_save(name: str) -> bool:
    return _OF_A_STEP.match(name) is not None or _REWRITTEN.match(name) is not None


def unit_of(chosen: Candidate, found: Sequence[Candidate], folder: str, known: Known) -> Unit:
    """All that belongs to a checkpoint that lies in `folder`, among those that were `found`."""
    is_folder = os.path.isdir(os.path.join(folder, chosen.path))
    inside = chosen.path if is_folder else root(chosen.path, known)
    if inside:
        return Unit(inside, sorted(_files(os.path.join(folder, inside), inside)))
    if tensorflow.is_one(os.path.join(folder, chosen.path)):
        paths = tensorflow.parts(os.path.join(folder, chosen.path))
        return Unit("", [os.path.relpath(path, folder) for path in paths])
    return Unit("", [chosen.path] + [one.path for one in found if _goes_with(one, chosen)])


def _goes_with(other: Candidate, chosen: Candidate) -> bool:
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


def grouped(paths: Iterable[str], known: Known) -> Dict[str, List[str]]:
    """`paths` by the folder that is one save; those of none under ""."""
    groups = {}  # type: Dict[str, List[str]]
    for path in paths:
        groups.setdefault(root(path, known), []).append(path)
    return groups
