"""The vitals of a job, node by node: the agent writes those of the first one, tasks the others'."""

import os
from typing import Mapping, Optional

from ..vitals import sampling
from . import launch, program_process
from .this_job import Work


def start(work: Work, local: str) -> sampling.NodeVitals:
    return sampling.started(
        work.run.path,
        work.job,
        _mark(program_process.tag(work.run, work.job)),
        local,
        shared=work.plan.origin.cluster == "here",
        may_write=lambda: not work.lease.lost(),
        quiet=work.lease.quiet,
    )


def end(work: Work, vitals: Optional[sampling.NodeVitals]) -> Optional[int]:
    """The number of a process that a broken driver does not let end, if there is one."""
    if vitals is None:
        return None
    stuck = vitals.end()
    if vitals.why_no_gpus:
        work.event_log.note("no vitals of GPUs", why=vitals.why_no_gpus)
    return stuck


def start_on_other_node(environment: Mapping[str, str]) -> Optional[sampling.NodeVitals]:
    """Of the node of a task: by the first of its tasks, unless the agent is there, too."""
    found = launch.rank(environment)
    tag = environment.get(program_process.TAG, "")
    folder, _, job = tag.rpartition("#")
    if found.get("GROUP_RANK", "0") == "0" or found.get("LOCAL_RANK", "0") != "0":
        return None
    if not job.isdigit() or not os.path.isdir(folder):
        return None
    local = environment.get("RABASKA_LOCAL", "")
    try:
        return sampling.started(folder, int(job), _mark(tag), local if os.path.isdir(local) else "")
    except (OSError, RuntimeError):
        return None  # nothing depends on it


def _mark(tag: str) -> str:
    return "{}={}".format(program_process.TAG, tag)
