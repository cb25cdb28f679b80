"""What makes an interrupted training end differently, and what to change."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    name: str
    what: str
    fix: str
    place: str = ""  # where it shows: in the source, or the checkpoint
    serious: bool = True  # without it, the run would still reach its end as well


_SESSION = "`rabaska.training.session` does all of this: see the guide on exact resume"
_KNOWN = {
    "never saves": (
        "no checkpoint was found",
        "save model, optimizer, scheduler, step and generators into `{checkpoints}` regularly; "
        "if it already saves, name its files in `[checkpoints] patterns`",
    ),
    "not taken up": (
        "it started over although there was a checkpoint",
        'give it the checkpoint: `command = "… --resume {checkpoint}"`, or read '
        "RABASKA_CHECKPOINT, and load it",
    ),
    "fails": (
        "it fails when it resumes",
        "read the log of that job; `rabaska explain` knows many messages",
    ),
    "place lost": (
        "it loaded the weights, but counted from the first step again",
        "save the step and the epoch with the weights, and continue from there",
    ),
    "half-written": (
        "a kill while saving left an incomplete checkpoint, and there was no other",
        "write to a temporary name in the same folder, then `os.replace`; or keep the last two",
    ),
    "optimizer": (
        "the state of the optimizer is missing from the checkpoint",
        "save `optimizer.state_dict()`, and load it before the first step",
    ),
    "scheduler": (
        "the state of the learning-rate scheduler is missing from the checkpoint",
        "save `scheduler.state_dict()`, and load it before the first step",
    ),
    "data order": (
        "the data come in a different order after a resume",
        "shuffle by a generator that is seeded from the epoch, and skip the batches already "
        f"used; {_SESSION}",
    ),
    "random state": (
        "random numbers differ after a resume, as in dropout or augmentation",
        f"save and restore the generators of Python, NumPy and PyTorch; {_SESSION}",
    ),
    "unknown": (
        "something that matters is not in the checkpoint",
        f"save everything that changes during the training; {_SESSION}",
    ),
}
_NOT_SEEDED = Fault(
    "not seeded",
    "it draws different random numbers at each start, even without an interruption",
    "seed the generators of Python, NumPy and PyTorch, in the data loader's workers too "
    "(`worker_init_fn`), and avoid `default_rng()` without a seed",
    serious=False,
)


def fault(name: str, place: str = "") -> Fault:
    if name == _NOT_SEEDED.name:
        return _NOT_SEEDED
    what, fix = _KNOWN[name]
    return Fault(name, what, fix, place)
