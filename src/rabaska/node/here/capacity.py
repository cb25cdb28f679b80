"""How much this computer can run at once: one slot for each GPU, or one slot."""

import os
import re
from typing import Any, List, NamedTuple

from .. import asking, files
from .directives import Refused

_ASKING = 20.0  # seconds nvidia-smi may take; with a broken driver it never answers


class Capacity(NamedTuple):
    slots: int
    gpus: List[str]  # as CUDA_VISIBLE_DEVICES names them

    def gpu(self, slot: int) -> str:
        """The GPU of a slot; with more slots than GPUs, several slots share one."""
        return self.gpus[slot % len(self.gpus)] if self.gpus else ""


def capacity(queue: str) -> Capacity:
    """What may run at once: RABASKA_SLOTS, else <queue>/capacity.json, else what is found.

    capacity.json may say {"slots": 2}, and {"gpus": ["0", "2"]} to keep GPUs out of it.
    """
    said = _said(os.path.join(queue, "capacity.json"))
    gpus = said["gpus"] if "gpus" in said else found_gpus()
    slots = os.environ.get("RABASKA_SLOTS") or said.get("slots") or len(gpus) or 1
    try:
        return Capacity(_at_least_one(slots), [str(gpu) for gpu in gpus])
    except (TypeError, ValueError):
        raise Refused("the number of slots is {!r}; it must be 1 or more".format(slots))


def check(able: Capacity, gpus: int) -> None:
    """Refused when a job that asks for `gpus` could never start."""
    if gpus > len(able.gpus):
        there = "there is {}".format(len(able.gpus)) if able.gpus else "this computer has none"
        raise Refused("the job asks for {} GPU(s), and {}".format(gpus, there))
    if gpus > able.slots:
        raise Refused("the job asks for {} GPUs, and {} slot(s) may run".format(gpus, able.slots))


def found_gpus() -> List[str]:
    """The numbers of the GPUs that nvidia-smi lists; none when it cannot be asked."""
    try:
        listed = asking.heard(["nvidia-smi", "-L"], _ASKING)
    except OSError:
        return []
    if listed.exit_code != 0:
        return []
    return re.findall(r"^GPU (\d+):", listed.said.decode("utf-8", "replace"), re.MULTILINE)


def _at_least_one(slots: Any) -> int:
    if int(slots) < 1:
        raise ValueError(slots)
    return int(slots)


def _said(path: str) -> files.Json:
    try:
        return files.read_json(path) or {}
    except ValueError as problem:
        raise Refused("{} is not JSON: {}".format(path, problem))
