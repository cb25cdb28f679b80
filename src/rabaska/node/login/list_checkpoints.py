"""The checkpoints of a run, each with its size, its age and whether it is valid.

`checkpoints RUNFOLDER`

It prints a JSON line for each, the one that a job would resume from first. The quick check is
made, which reads no content: a job reads all of a checkpoint before it uses it.
"""

import json
import os
import sys
from typing import Any, Dict, List

from ..checkpoints import save_slots, validity
from ..checkpoints.newest_checkpoint import everything
from ..checkpoints.order import in_order
from ..record import plan as plans
from ..record.run_folder import RunFolder

MOST = 200  # that are listed


def main(argv: List[str]) -> int:
    run = RunFolder(os.path.abspath(argv[0]))
    if not os.path.isdir(run.path):
        sys.stderr.write("there is no run folder {}\n".format(run.path))
        return 9
    for line in checkpoints(run):
        sys.stdout.write(json.dumps(line) + "\n")
    return 0


def checkpoints(run: RunFolder) -> List[Dict[str, Any]]:
    holder = run.holder()
    if not holder:
        return []
    folder = run.carried(holder)
    try:
        plan = plans.load(run)
    except ValueError:
        plan = None
    found = in_order(everything(folder, plan.patterns if plan else []), save_slots.read(folder))
    return [
        {
            "path": one.path,
            "size": one.size,
            "written": one.mtime_ns / 1e9,
            "problem": _problem(os.path.join(folder, one.path)),
        }
        for one in found[:MOST]
    ]


def _problem(path: str) -> str:
    try:
        return validity.check(path) or ""
    except OSError as problem:
        return "it cannot be read: {}".format(problem.strerror or problem)
