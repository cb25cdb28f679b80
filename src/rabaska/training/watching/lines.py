"""Lines in the run's metrics.jsonl: often at first, then every few seconds."""

import json
import os
import sys
import time
from typing import Any, Dict, Mapping, Optional

from rabaska.training.watching.counting import Count

SOONEST, LATEST = 0.25, 15.0  # seconds from one line to the next
_SHARE = 1 / 50  # of the time that the training has lasted
_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "LOCAL_RANK")


class Lines:
    """Appended by the first rank only. A line that cannot be written is left out."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._path = environment.get("RABASKA_METRICS", "")
        self._job = int(environment.get("RABASKA_JOB") or 0)

    def write(self, count: Count) -> None:
        """A line, and the time of the next one."""
        now = count.clock()
        if count.began is None:
            count.began = now  # a program without a loader of the kind we know
        lasted = now - count.began
        count.due = now + min(LATEST, max(SOONEST, lasted * _SHARE))
        if count.steps:
            self.append(count.line(time.time()))

    def append(self, told: Dict[str, Any]) -> None:
        if not self._path or rank(self._environment):
            return
        line = json.dumps(dict(told, job=self._job, pid=os.getpid())) + "\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path, flags, 0o644)
        except OSError:
            return
        try:
            os.write(descriptor, line.encode("utf-8"))
        except OSError:
            pass  # no space: the counts go on, and the next line tells all of them
        finally:
            os.close(descriptor)


def rank(environment: Mapping[str, str]) -> int:
    """Which of several processes this is: as they agreed among themselves, else as launched."""
    agreed = _agreed()
    if agreed is not None:
        return agreed
    for name in _RANKS:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    return 0


def _agreed() -> Optional[int]:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_rank())
