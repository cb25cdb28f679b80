"""Waits until the job of a run that was asked to stop has saved and left.

`wait-for-exit RUNFOLDER` prints `left` when no job runs any more, and `still there` when its time
to save is over, or when it gives no sign of life. Schedulers such as Torque kill what they are told
to delete within a fraction of a second: STOP comes first, and their command last.
"""

import sys
import time
from typing import List

from ..record import jobs, lease, plan
from ..record.run_folder import RunFolder

LEFT, STILL_THERE = "left", "still there"

_TO_NOTICE = 30.0  # seconds to see STOP, and after its grace to copy results and record the end
_SILENCE = 20.0  # seconds; a job gives a sign every other one
_LOOK = 0.2


def main(argv: List[str]) -> int:
    run = RunFolder(argv[0])
    try:
        run_plan = plan.load(run)
    except (plan.WrongFormat, ValueError, KeyError, TypeError):
        run_plan = None
    patience = _TO_NOTICE + (run_plan.grace if run_plan is not None else 0.0)
    sys.stdout.write("{}\n".format(LEFT if has_left(run, patience) else STILL_THERE))
    return 0


def has_left(run: RunFolder, patience: float) -> bool:
    """Whether no job is at work, after at most `patience` seconds."""
    began = heard = time.monotonic()
    sign = None
    while True:
        job, now = run.holder(), time.monotonic()
        if job == 0 or jobs.read_ended(run, job) is not None:
            return True
        if lease.holder_alive(run, job) is False:
            return True
        latest = job, lease.sign_of_life(run, job)
        if latest != sign:
            sign, heard = latest, now
        if now - began > patience or now - heard > _SILENCE:
            return False
        time.sleep(_LOOK)
