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

from typing import Dict, Iterable, List, NamedTuple, Sequence, Tuple

from .checkpoint_names import (
    EPOCH_WORDS,
    MODEL_WORDS,
    NO_STATE,
    NO_STEP,
    STATE,
    STEP_WORDS,
    UNLIKELY,
    natural,
    rank,
    step_in,
    tier_of,
    words_of,
)
from .save_slots import NOTHING_EARLIER, Earlier, LoggedSave, SaveSlot, in_turn

SAVED_TOGETHER = 10 * 10**9  # nanoseconds


class Candidate(NamedTuple):
    path: str  # relative to the folder that was searched
    size: int  # bytes
    mtime_ns: int


def in_order(
    found: Iterable[Candidate], saves: Sequence[LoggedSave] = (), earlier: Earlier = NOTHING_EARLIER
) -> List[Candidate]:
    """All of them, in the order of the rule above; `saves` are those that were watched."""
    candidates = sorted(set(found))
    earlier = earlier._replace(saves=saves)
    moments = _moments(candidates, _seen(candidates, saves), earlier)
    own = {step_in(path).family for save in saves for path in _and_above(save.path)}
    tiers = {one: tier_of(one.path, own) for one in candidates}
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
        if step.place != NO_STEP:
            families.setdefault(step.family, []).append(one)
    return list(families.values())


def _are_slots(family: List[Candidate], earlier: Earlier) -> bool:
    """Whether the numbers of a family are those of slots; where a word counts, they are steps."""
    words = set(words_of(step_in(family[0].path).family))
    if words & (EPOCH_WORDS | STEP_WORDS - MODEL_WORDS):
        return False
    slots = [SaveSlot(one.path, step_in(one.path).place[1], *one[1:]) for one in family]
    return in_turn(slots, words, earlier)
