"""What a scheduler wrote into the output of a job that it ended: the only word of some jobs.

An agent that is killed with its whole job records no end. Slurm and PBS say why in the file that
catches the job's output; a job that is started again adds to that file.
"""

import os
import re
from typing import List

from .run_folder import RunFolder

_READ = 64 * 1024  # bytes, from the end
_MEMORY = re.compile(
    r"oom[-_ ]kill event|exceeded (job |step )?memory limit|exceeded virtual memory limit"
    r"|job killed: \S*mem\b.* exceeded limit|[Cc]group mem limit exceeded",
    re.IGNORECASE,
)
# PBS and Torque ask a job to end before they kill it: it may have left a record, of its signal.
_MEMORY_OF_PBS = re.compile(r"PBS: job killed: \S*mem\b.* exceeded limit")
_REQUEUED = re.compile(r"CANCELLED AT \S+ DUE TO (NODE FAILURE|PREEMPTION|JOB REQUEUE)")
_WORDS = {
    "NODE FAILURE": "its node failed",
    "PREEMPTION": "it was preempted by another job",
    "JOB REQUEUE": "the scheduler queued it again",
}


def memory_line(run: RunFolder, job_id: str, *, asked_first: bool = False) -> str:
    """What the scheduler said when it ended the job for its memory; "" when it did not.

    With `asked_first`, only one that asks a job to end, which Slurm does for other reasons.
    """
    pattern = _MEMORY_OF_PBS if asked_first else _MEMORY
    found = [line.strip() for line in _lines(run, job_id) if pattern.search(line)]
    return found[-1] if found else ""


def restarts(run: RunFolder, job_id: str) -> List[str]:
    """Why the scheduler ended and queued the job again, each time, in words."""
    found = (_REQUEUED.search(line) for line in _lines(run, job_id))
    return [_WORDS[each.group(1)] for each in found if each]


def path_of(run: RunFolder, job_id: str) -> str:
    return os.path.join(run.logs, "scheduler-{}.out".format(job_id))


def _lines(run: RunFolder, job_id: str) -> List[str]:
    if not job_id or os.sep in job_id:
        return []
    return [line for path in [path_of(run, job_id), *_spooled(run, job_id)] for line in _end(path)]


def _spooled(run: RunFolder, job_id: str) -> List[str]:
    """What PBS (`0.control.OU`) or Torque (`cats-7f3a.o0`) caught itself, there when it is over."""
    number = re.escape(job_id)
    own = re.compile(r"{0}(\..*)?\.OU|.*\.o{0}".format(number))
    try:
        names = sorted(os.listdir(run.logs))
    except OSError:
        return []
    return [os.path.join(run.logs, name) for name in names if own.fullmatch(name)]


def _end(path: str) -> List[str]:
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _READ))
            return stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
