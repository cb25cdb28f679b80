"""In which order checkpoints are tried: the state that the program saved last comes first.

1. What is no state of the program comes last, however new it is: parts of a checkpoint
   (`optimizer.pt`, `rng_state.pth`), data that a program stores in the same formats
   (`embeddings.npz`, `features.pt`, `cache.pkl`) and files that were downloaded (a name that ends
   in a hash, as torch.hub gives it, or a folder such as `hub/` or `.cache/`; not those that the
   program was watched saving there). A step or epoch in the name speaks for a state in such a
   folder, or where the word is vague (`opt-125m-step-300.pt`). Before them come
   files that could be anything: `.npz`, `.npy` or `.pkl` with a name that says nothing, and, when
   the program is watched, files that it did not save itself and that are not named like a
   checkpoint.
2. Of the others the newest save wins. Which is newest is taken, where the program is watched,
   from the order in which it saved; else from the step or epoch in the names (`epoch-20` after
   `epoch-10`, whenever they were written); else from the time at which they were written. The
   numbers of slots that are written in turn (`ckpt_0`, `ckpt_1`) are no steps.
3. Files saved without a training step between them are one save; where nobody watched, files
   written within ten seconds of each other, because `best.pt` is often a copy made just after
   `last.pt`. Within one save, names made for continuing come first (`last`, `latest`,
   `checkpoint`, `resume`), then names with a step or epoch, then plain names (`model.pt`), then
   `best`, which may be an older state or weights without an optimizer.
4. Among equals the later step, then the newer file, then the later name.

The first in that order that proves complete is used (`checkpoints.newest_valid`).
"""

import functools
import os
import re
from typing import Dict, Iterable, List, NamedTuple, Sequence, Set, Tuple

from .save_log import LoggedSave
from .save_slots import NOTHING_EARLIER, Earlier, SaveSlot, in_turn

SAVED_TOGETHER = 10 * 10**9  # nanoseconds


class Candidate(NamedTuple):
    path: str  # relative to the folder that was searched
    size: int  # bytes
    mtime_ns: int


STATE, UNLIKELY, NO_STATE = range(3)
FOR_CONTINUING, NUMBERED, PLAIN, BEST = range(4)

_PARTS = {
    "optimizer",
    "optim",
    "opt",
    "scheduler",
    "sched",
    "scaler",
    "rng",
    "args",
    "history",
    "metrics",
    "tokenizer",
    "vocab",
    "predictions",
    "results",
}
_DATA = {
    "embedding",
    "embeddings",
    "feature",
    "features",
    "feats",
    "activations",
    "logits",
    "preds",
    "outputs",
    "samples",
    "cache",
    "cached",
    "dataset",
    "datasets",
    "data",
    "tokens",
    "tokenized",
    "stats",
    "statistics",
    "mean",
    "std",
    "labels",
    "targets",
    "index",
    "indices",
    "splits",
    "pretrained",
    "losses",
    "curves",
    "config",
    "hparams",
}
# With a step or epoch these may as well tell of which model it is, or after what it was saved.
_VAGUE = {
    "opt",
    "args",
    "history",
    "metrics",
    "results",
    "data",
    "dataset",
    "datasets",
    "tokens",
    "tokenized",
    "stats",
    "statistics",
    "mean",
    "std",
    "index",
    "splits",
    "pretrained",
    "config",
    "hparams",
}
_MODELS = {"checkpoint", "ckpt", "chkpt", "model", "weights", "state"}
_CACHES = {"hub", ".cache", "cache", "pretrained", "downloads", "huggingface"}
# resnet50-0676ba61. Digits alone are a step or a date, however many they are.
_HASHED = re.compile(r"-(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,64}\Z")
# Parts that libraries write: Accelerate's, whose number is that of a process, and PaddlePaddle's.
_OF_LIBRARIES = re.compile(r"random_states_\d+\.pkl|.*\.pdopt")
_COULD_BE_ANYTHING = (".npz", ".npy", ".pkl", ".pickle")
_CONTINUING = re.compile(r"^(last|latest|checkpoint|ckpt|chkpt|resume|snapshot|current)")
_ALONE = re.compile(r"(^|[^a-zA-Z0-9])\d+(?![a-zA-Z0-9])")

_EPOCH = {"epoch", "epochs", "ep", "round"}
_STEP = {
    "step",
    "steps",
    "globalstep",
    "iter",
    "iters",
    "iteration",
    "iterations",
    "it",
    "itr",
    "update",
    "updates",
    "tick",
    "kimg",
    "checkpoint",
    "ckpt",
    "chkpt",
}
# Their number is no step: it stays the same while a program trains.
_NO_STEP = {
    "version",
    "v",
    "fold",
    "rank",
    "seed",
    "part",
    "shard",
    "gpu",
    "node",
    "worker",
    "layer",
    "run",
    "trial",
    "exp",
    "experiment",
    "stage",
    "of",
    "lr",
    "bs",
    "size",
    "dim",
    "top",
    "k",
}
_PIECE = re.compile(r"(\d+\.\d+)|(\d+)|([A-Za-z]+)")


def in_order(
    found: Iterable[Candidate], saves: Sequence[LoggedSave] = (), earlier: Earlier = NOTHING_EARLIER
) -> List[Candidate]:
    """All of them, in the order of the rule above; `saves` are those that were watched."""
    candidates = sorted(set(found))
    earlier = earlier._replace(saves=saves)
    moments = _moments(candidates, _seen(candidates, saves), earlier)
    own = {step_in(path).family for save in saves for path in _and_above(save.path)}
    tiers = {one: _tier(one.path, own) for one in candidates}
    ordered = []  # type: List[Candidate]
    for tier in (STATE, UNLIKELY, NO_STATE):
        members = [one for one in candidates if tiers[one] == tier]
        ordered.extend(_newest_first(members, moments))
    return ordered


class Moment(NamedTuple):
    """When a checkpoint was saved, as far as is known."""

    time: int  # nanoseconds, as the clock said or should have said
    save: int  # which of the saves that were watched; 0 where nobody watched


def _newest_first(members: List[Candidate], moments: Dict[Candidate, Moment]) -> List[Candidate]:
    def age(one: Candidate) -> Tuple[Moment, Tuple[int, int], int, List[Tuple[int, int, str]]]:
        return moments[one], step_in(one.path).place, one.mtime_ns, natural(one.path)

    left = sorted(members, key=age, reverse=True)
    ordered = []  # type: List[Candidate]
    while left:
        newest = moments[left[0]]
        together = [one for one in left if _is_one_save(newest, moments[one])]
        ordered.extend(sorted(together, key=lambda one: rank(one.path)))
        left = [one for one in left if not _is_one_save(newest, moments[one])]
    return ordered


def _is_one_save(newest: Moment, other: Moment) -> bool:
    if newest.save and other.save:
        return newest.save == other.save
    return other.time >= newest.time - SAVED_TOGETHER


def _seen(candidates: List[Candidate], saves: Sequence[LoggedSave]) -> List[LoggedSave]:
    """The saves that made the candidates as they are now, by the names of these.

    A file that was written again behind the watcher's back is known by its name alone, and a
    folder is one checkpoint, whichever of its files were saved under the watcher's eyes.
    """
    by_path = {one.path: one for one in candidates}
    seen = []
    for save in saves:
        path = next((path for path in _and_above(save.path) if path in by_path), None)
        if path is not None and (path != save.path or by_path[path].mtime_ns == save.mtime_ns):
            seen.append(save._replace(path=path))
    return seen


def _and_above(path: str) -> List[str]:
    """A path and the folders that hold it, the innermost first."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts), 1, -1)]


def _moments(
    candidates: List[Candidate], seen: List[LoggedSave], earlier: Earlier
) -> Dict[Candidate, Moment]:
    """When each was saved: its time, corrected where the order is known and the clock was not."""
    moments = {one: Moment(one.mtime_ns, 0) for one in candidates}
    by_path = {one.path: one for one in candidates}
    latest = 0
    for number, group in enumerate(_one_save_each(seen), 1):
        members = [by_path[save.path] for save in group]
        latest = max([latest] + [one.mtime_ns for one in members])
        moments.update((one, Moment(latest, number)) for one in members)
    for family in _families(candidates):
        if all(moments[one].save for one in family):
            continue  # the watcher saw in which order they came, which steps may not tell
        if _are_slots(family, earlier):
            continue
        latest = 0
        for one in sorted(family, key=lambda one: step_in(one.path).place):
            latest = max(latest, moments[one].time)
            moments[one] = Moment(latest, 0)
    return moments


def _one_save_each(seen: List[LoggedSave]) -> List[List[LoggedSave]]:
    """The saves in their order, those together that had no training step between them."""
    last = {save.path: save for save in seen}  # of a file that was saved again, the last
    groups = []  # type: List[List[LoggedSave]]
    for save in seen:
        if last[save.path] is not save:
            continue
        if groups and groups[-1][0].moment == save.moment:
            groups[-1].append(save)
        else:
            groups.append([save])
    return groups


def _families(candidates: List[Candidate]) -> List[List[Candidate]]:
    """Files whose names differ in their steps only."""
    families = {}  # type: Dict[str, List[Candidate]]
    for one in candidates:
        step = step_in(one.path)
        if step.place != _NOWHERE:
            families.setdefault(step.family, []).append(one)
    return list(families.values())


def _are_slots(family: List[Candidate], earlier: Earlier) -> bool:
    """Whether the numbers of a family are those of slots; where a word counts, they are steps."""
    words = set(_words(step_in(family[0].path).family))
    if words & (_EPOCH | _STEP - _MODELS):
        return False
    slots = [SaveSlot(one.path, step_in(one.path).place[1], *one[1:]) for one in family]
    return in_turn(slots, words, earlier)


class StepInName(NamedTuple):
    family: str  # the name without its steps
    place: Tuple[int, int]  # epoch and step, -1 where there is none


_NOWHERE = (-1, -1)


@functools.lru_cache(maxsize=4096)
def step_in(path: str) -> StepInName:
    """The step or epoch that a path tells: `epoch=3-step=400.ckpt`, `checkpoint-500/model.pt`."""
    folders, name = os.path.split(path)
    family, epoch, step = [], -1, -1  # type: List[str], int, int
    for part in folders.split("/"):
        pattern, found_epoch, found_step = _named(part)
        family.append(pattern)
        epoch, step = max(epoch, found_epoch), max(step, found_step)
    stem, ending = os.path.splitext(name)
    pattern, found_epoch, found_step = _named(stem)
    if (epoch, step, found_epoch, found_step) == (-1, -1, -1, -1):
        pattern, found_step = _only_number(stem)
    family.append(pattern + ending)
    return StepInName("/".join(family), (max(epoch, found_epoch), max(step, found_step)))


def names_a_step(folder: str) -> bool:
    """Whether a folder's own name tells a step or an epoch: `epoch_3`, `global_step500`."""
    return _named(folder)[1:] != _NOWHERE


def _named(text: str) -> Tuple[str, int, int]:
    """`text` with the numbers that words call steps or epochs taken out, and these numbers."""
    pieces = list(_PIECE.finditer(text))
    pattern, epoch, step, end = "", -1, -1, 0
    for place, piece in enumerate(pieces):
        before = pieces[place - 1].group(3) if place else None
        after = pieces[place + 1] if place + 1 < len(pieces) else None
        unit = (before or "").lower()
        if unit not in _EPOCH | _STEP and after is not None and after.start() == piece.end():
            unit = (after.group(3) or "").lower()  # 500steps
        pattern += text[end : piece.start()]
        end = piece.end()
        if piece.group(1):
            pattern += "*"  # a loss, which says nothing of the order
        elif piece.group(2) and unit in _EPOCH:
            pattern, epoch = pattern + "#", int(piece.group(2))
        elif piece.group(2) and unit in _STEP:
            pattern, step = pattern + "#", int(piece.group(2))
        else:
            pattern += piece.group(0)
    return pattern + text[end:], epoch, step


def _only_number(stem: str) -> Tuple[str, int]:
    """The one number of `model_12`, `000500` or `ckpt10`, if it can be a step."""
    pieces = list(_PIECE.finditer(stem))
    numbers = []
    for place, piece in enumerate(pieces):
        before = pieces[place - 1] if place else None
        word = before.group(3).lower() if before is not None and before.group(3) else ""
        attached = before is not None and word and before.end() == piece.start()
        can_be = not attached or _CONTINUING.match(word) or word == "model"
        if piece.group(2) and word not in _NO_STEP and can_be:
            numbers.append(piece)
    if len(numbers) != 1:
        return stem, -1
    only = numbers[0]
    return stem[: only.start()] + "#" + stem[only.end() :], int(only.group(2))


def _tier(path: str, own: Set[str]) -> int:
    """How likely it is that a program goes on from this; `own` are families that it saved."""
    stem, ending = os.path.splitext(os.path.basename(path))
    words = set(re.findall(r"[a-z]+", stem.lower()))
    named_for_it = rank(path) in (FOR_CONTINUING, NUMBERED)
    saved_by_itself = step_in(path).family in own
    folders = set(path.lower().split("/")[:-1])
    if _HASHED.search(stem) and not saved_by_itself:
        return NO_STATE
    if folders & _CACHES and not saved_by_itself and not _tells_a_state(stem):
        return NO_STATE
    if _OF_LIBRARIES.fullmatch(os.path.basename(path)):
        return NO_STATE
    if words & _PARTS and not _tells_a_state(stem):
        return NO_STATE
    if words & _DATA and not (saved_by_itself and named_for_it) and not _tells_a_state(stem):
        return NO_STATE
    if ending.lower() in _COULD_BE_ANYTHING and not named_for_it and not saved_by_itself:
        return UNLIKELY
    if own and not saved_by_itself and not named_for_it:
        return UNLIKELY
    return STATE


def is_state(path: str) -> bool:
    """Whether a file is called like a state of a program, of which nothing else is known."""
    return _tier(path, set()) == STATE


def _tells_a_state(stem: str) -> bool:
    """Whether a name says that it is a model's, of some step: `opt-125m-step-300`."""
    words = set(re.findall(r"[a-z]+", stem.lower()))
    return names_a_step(stem) and bool(words & _MODELS or not (words & (_PARTS | _DATA) - _VAGUE))


def rank(path: str) -> int:
    """How much a name looks made for continuing: the less the better."""
    words = _words(path)
    if any(word.startswith("best") or word.endswith("best") for word in words):
        return BEST
    if any(_CONTINUING.match(word) for word in words) and step_in(path).place == _NOWHERE:
        return FOR_CONTINUING
    if step_in(path).place != _NOWHERE or _ALONE.search(os.path.basename(path)):
        return NUMBERED
    return NUMBERED if any(word in _EPOCH | _STEP for word in words) else PLAIN


def _words(path: str) -> List[str]:
    """The words of a path below `output/` or `checkpoints/`, which say nothing themselves."""
    inside = path.split("/", 1)[-1]
    return re.findall(r"[a-z]+", os.path.splitext(inside)[0].lower())


def natural(name: str) -> List[Tuple[int, int, str]]:
    """A sort key by which `epoch-9` comes before `epoch-10`."""
    pieces = re.findall(r"([0-9]+)|([^0-9]+)", name)
    return [(1, int(number), "") if number else (0, 0, text) for number, text in pieces]
