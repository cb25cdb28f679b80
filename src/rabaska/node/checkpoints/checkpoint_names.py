"""What a checkpoint's name tells: its step or epoch, and whether a program could resume from it."""

import functools
import os
import re
from typing import List, NamedTuple, Set, Tuple

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
MODEL_WORDS = {"checkpoint", "ckpt", "chkpt", "model", "weights", "state"}
_CACHES = {"hub", ".cache", "cache", "pretrained", "downloads", "huggingface"}
# resnet50-0676ba61. Digits alone are a step or a date, however many they are.
_HASHED = re.compile(r"-(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,64}\Z")
# Parts that libraries write: Accelerate's, whose number is that of a process, and PaddlePaddle's.
_OF_LIBRARIES = re.compile(r"random_states_\d+\.pkl|.*\.pdopt")
_COULD_BE_ANYTHING = (".npz", ".npy", ".pkl", ".pickle")
_CONTINUING = re.compile(r"^(last|latest|checkpoint|ckpt|chkpt|resume|snapshot|current)")
_ALONE = re.compile(r"(^|[^a-zA-Z0-9])\d+(?![a-zA-Z0-9])")
EPOCH_WORDS = {"epoch", "epochs", "ep", "round"}
STEP_WORDS = {
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
_NOT_STEP_WORDS = {
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


class StepInName(NamedTuple):
    family: str  # the name without its steps
    place: Tuple[int, int]  # epoch and step, -1 where there is none


NO_STEP = (-1, -1)


@functools.lru_cache(maxsize=4096)
def step_in(path: str) -> StepInName:
    """The step or epoch that a path tells: `epoch=3-step=400.ckpt`, `checkpoint-500/model.pt`."""
    folders, name = os.path.split(path)
    family, epoch, step = [], -1, -1  # type: List[str], int, int
    for part in folders.split("/"):
        pattern, found_epoch, found_step = _split_steps(part)
        family.append(pattern)
        epoch, step = max(epoch, found_epoch), max(step, found_step)
    stem, ending = os.path.splitext(name)
    pattern, found_epoch, found_step = _split_steps(stem)
    if (epoch, step, found_epoch, found_step) == (-1, -1, -1, -1):
        pattern, found_step = _only_number(stem)
    family.append(pattern + ending)
    return StepInName("/".join(family), (max(epoch, found_epoch), max(step, found_step)))


def names_a_step(folder: str) -> bool:
    """Whether a folder's own name tells a step or an epoch: `epoch_3`, `global_step500`."""
    return _split_steps(folder)[1:] != NO_STEP


def _split_steps(text: str) -> Tuple[str, int, int]:
    """`text` with the numbers that words call steps or epochs taken out, and these numbers."""
    pieces = list(_PIECE.finditer(text))
    pattern, epoch, step, end = "", -1, -1, 0
    for place, piece in enumerate(pieces):
        before = pieces[place - 1].group(3) if place else None
        after = pieces[place + 1] if place + 1 < len(pieces) else None
        unit = (before or "").lower()
        if (
            unit not in EPOCH_WORDS | STEP_WORDS
            and after is not None
            and after.start() == piece.end()
        ):
            unit = (after.group(3) or "").lower()  # 500steps
        pattern += text[end : piece.start()]
        end = piece.end()
        if piece.group(1):
            pattern += "*"  # a loss, which says nothing of the order
        elif piece.group(2) and unit in EPOCH_WORDS:
            pattern, epoch = pattern + "#", int(piece.group(2))
        elif piece.group(2) and unit in STEP_WORDS:
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
        if piece.group(2) and word not in _NOT_STEP_WORDS and can_be:
            numbers.append(piece)
    if len(numbers) != 1:
        return stem, -1
    only = numbers[0]
    return stem[: only.start()] + "#" + stem[only.end() :], int(only.group(2))


def tier_of(path: str, own: Set[str]) -> int:
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
    return tier_of(path, set()) == STATE


def _tells_a_state(stem: str) -> bool:
    """Whether a name says that it is a model's, of some step: `opt-125m-step-300`."""
    words = set(re.findall(r"[a-z]+", stem.lower()))
    return names_a_step(stem) and bool(
        words & MODEL_WORDS or not (words & (_PARTS | _DATA) - _VAGUE)
    )


def rank(path: str) -> int:
    """How much a name looks made for continuing: the less the better."""
    words = words_of(path)
    if any(word.startswith("best") or word.endswith("best") for word in words):
        return BEST
    if any(_CONTINUING.match(word) for word in words) and step_in(path).place == NO_STEP:
        return FOR_CONTINUING
    if step_in(path).place != NO_STEP or _ALONE.search(os.path.basename(path)):
        return NUMBERED
    return NUMBERED if any(word in EPOCH_WORDS | STEP_WORDS for word in words) else PLAIN


def words_of(path: str) -> List[str]:
    """The words of a path below `output/` or `checkpoints/`, which say nothing themselves."""
    inside = path.split("/", 1)[-1]
    return re.findall(r"[a-z]+", os.path.splitext(inside)[0].lower())


def natural(name: str) -> List[Tuple[int, int, str]]:
    """A sort key by which `epoch-9` comes before `epoch-10`."""
    pieces = re.findall(r"([0-9]+)|([^0-9]+)", name)
    return [(1, int(number), "") if number else (0, 0, text) for number, text in pieces]
