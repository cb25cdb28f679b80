"""The report of a run that waits for its first job: `report` in a tenth of its time.

Most runs that are not over wait in a queue, and what `report` reads of the others (logs,
checkpoints, leases) they do not have.
"""

import os
from typing import Any, Dict, Optional

from ..record import chain, plan, submissions
from ..record.runfolder import RunFolder

Json = Dict[str, Any]


def report_untouched(run: RunFolder) -> Optional[Json]:
    """What `report` would say of the run; None when there is more to tell than this."""
    if run.holder() != 0 or run.jobs() or os.path.exists(run.stop) or os.listdir(run.logs):
        return None
    try:
        asked = plan.load(run)
    except plan.WrongFormat:
        return None
    if asked is None:
        return None
    return {
        "run": asked.run,
        "id": asked.id,
        "path": run.path,
        "about": asked.about,
        "walltime": asked.walltime,
        "jobs_requested": asked.jobs,
        "submissions": list(submissions.lines(run)),
        "done": False,
        "stop": False,
        "verdict": dict(chain.verdict([])._asdict()),
        "begins_again": "",
        "jobs": [],
        "not_kept": [],
        "data": [],
        "checkpoint": None,
        "metrics": {},
        "speed": None,
        "forecast": None,
        "saving": None,
        "extended": None,
        "left_running": 0,
        "not_watched": "",
        "tail": "",
        "problems": [],
    }
