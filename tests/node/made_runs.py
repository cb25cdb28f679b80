"""Run folders as jobs leave them, made by hand: every record is written by the real writers."""

import os
import socket
from pathlib import Path
from typing import Any

from rabaska.node import files, processes
from rabaska.node.record import chain_rule, jobs, plan
from rabaska.node.record.run_folder import RunFolder

PLAN = plan.Plan(
    run="digits-7f3a",
    command=["python3", "train.py"],
    resume=[],
    code="none",
    datasets=[],
    patterns=["*.npz"],
    keep=[],
    variables={},
    walltime=60.0,
    grace=5.0,
    signal="TERM",
    jobs=3,
    progress="",
    origin=plan.Origin(project="digits"),
)


def make_run(store: Path, name: str = "digits-7f3a", **changes: Any) -> RunFolder:
    """A run that has not begun."""
    run = RunFolder(str(store / "runs" / name))
    for folder in (run.logs, run.output(0), run.checkpoints(0), os.path.join(run.path, "jobs")):
        os.makedirs(folder)
    files.write_json(run.plan, plan.to_json(PLAN._replace(run=name, **changes)))
    return run


def begin_job(run: RunFolder, *, pid: int | None = None, host: str | None = None) -> int:
    """Claim the run for its next job; the holder is this process unless told otherwise."""
    last = run.holder()
    job = last + 1
    os.rename(run.carried(last), run.carried(job))
    os.makedirs(run.job(job))
    pid = os.getpid() if pid is None else pid
    jobs.write_begun(
        run,
        jobs.Begun(
            job=job,
            id=f"12_{job}",
            host=host or socket.gethostname(),
            boot=processes.boot_id(),
            pid=pid,
            started=processes.start_id(pid) or "long ago",
            begun=1000.0 * job,
            ready=True,
        ),
    )
    return job


def end_job(run: RunFolder, job: int, how: str = chain_rule.TIME_LIMIT, **more: Any) -> None:
    fields = {
        "reason": "", "exit_code": 0, "signal": None, "checkpoint": None, "progressed": True, **more
    }  # fmt: skip
    jobs.write_ended(
        run, jobs.Ended(job=job, id=f"12_{job}", how=how, ended=1000.0 * job + 60, **fields)
    )


def print_log(run: RunFolder, job: int, text: str | bytes) -> None:
    data = text.encode() if isinstance(text, str) else text
    with open(run.log(job), "ab") as stream:
        stream.write(data)
