"""Options of a training command by their usual names: workers, batch size, how often."""

import re
from collections.abc import Sequence

WORKERS = ("workers", "num-workers", "n-workers", "dataloader-num-workers", "nworkers", "j")
BATCH = ("batch-size", "batch", "bs", "b", "per-device-train-batch-size", "train-batch-size")
LOGGING = (
    "log-every", "log-interval", "log-freq", "logging-steps", "print-freq", "print-every",
    "log-every-n-steps", "log-steps",
)  # fmt: skip
SAVING = (
    "save-every", "save-interval", "save-steps", "save-freq", "checkpoint-every",
    "checkpoint-interval", "ckpt-every", "checkpointing-steps",
)  # fmt: skip
VALIDATION = (
    "eval-every", "eval-steps", "eval-interval", "val-every", "val-interval", "eval-freq",
    "check-val-every-n-epoch", "val-check-interval", "validate-every", "validation-steps",
)  # fmt: skip


def changed(command: Sequence[str], names: Sequence[str], factor: float = 1.0, to: int = 0) -> str:
    """`--workers 8` in place of `--workers 2`; empty where the command has no such option.

    The new value is `to`, or the present one times `factor`.
    """
    for place, word in enumerate(command):
        found = re.fullmatch(r"(--?)([A-Za-z][\w.-]*?)(?:=(\d+)|(\d+)?)", word)
        if not found or found[2].replace("_", "-").lower() not in names:
            continue
        option = f"{found[1]}{found[2]}"
        if found[3]:
            return _sentence(f"{option}={_new(found[3], factor, to)}", word)
        if found[4]:
            return _sentence(f"{option}{_new(found[4], factor, to)}", word)
        if place + 1 < len(command) and command[place + 1].isdigit():
            old = command[place + 1]
            return _sentence(f"{option} {_new(old, factor, to)}", f"{option} {old}")
    return ""


def _new(old: str, factor: float, to: int) -> int:
    return to or max(1, round(int(old) * factor))


def _sentence(new: str, old: str) -> str:
    return f"`{new}` instead of `{old}` in the command"
