"""Every run of a store, a JSON line each: for a computer that does not know them.

`runs STORE [trials]` prints {"run", "path", "id", "project", "folder", "time"}; a folder whose plan
cannot be read gives {"path", "problem"}. `time` is that of its first submission, by this cluster's
clock. Trials of a search are listed only where somebody asks for them.
"""

import json
import os
import sys
from typing import List

from .. import files
from ..record import field_types, plan
from ..record.run_folder import TRIAL, RunFolder
from .run_report import DAMAGE, runs_of


def main(argv: List[str]) -> int:
    for path in runs_of(argv[0]):
        if len(argv) < 2 and os.path.exists(os.path.join(path, TRIAL)):
            continue  # `search table` lists those; there may be thousands
        try:
            line = _line_for(RunFolder(path))
        except (plan.WrongFormat,) + DAMAGE as problem:
            line = {"path": path, "problem": "{}: {}".format(type(problem).__name__, problem)}
        sys.stdout.write(json.dumps(line, sort_keys=True) + "\n")
    return 0


def _line_for(run: RunFolder) -> files.Json:
    run_plan = plan.load(run)
    if run_plan is None:
        return {"path": run.path, "problem": "it has no run.json"}
    times = (line.get("time") for line in field_types.submission_lines(run))
    return {
        "run": run.name,
        "path": run.path,
        "id": run_plan.id,
        "project": run_plan.origin.project,
        "folder": run_plan.origin.folder,
        "time": next((time for time in times if time), 0.0),
    }
