"""Stands in for Moab over Torque: msub, showq --xml, showstart, checkjob, canceljob."""

import sys
import time
from xml.sax.saxutils import quoteattr

from engine import Job, Queue
from submission import Refused
from torque import checked

FIRST = 4761849


def main(program: str, words: list[str], queue: Queue) -> int:
    chosen = {
        "msub": msub, "showq": showq, "showstart": showstart, "checkjob": checkjob,
        "canceljob": canceljob,
    }  # fmt: skip
    return chosen[program](words, queue)


def msub(words: list[str], queue: Queue) -> int:
    try:
        asked = checked(words, queue)
    except Refused as refused:
        print(f"\n{refused}\n")
        return 1
    number = FIRST + len(queue.jobs())
    job = Job(
        FIRST, asked.name, [], asked.walltime, [int(parent) for parent in asked.after],
        environment={
            "MOAB_JOBID": str(number), "PBS_JOBID": f"{number}.mgr", "PBS_JOBNAME": asked.name,
            "PBS_WALLTIME": str(int(asked.walltime)),
        },
        output=asked.output(number),
    )  # fmt: skip
    print(f"\n{queue.submit(job, asked.script).number}")
    return 0


def showq(words: list[str], queue: Queue) -> int:
    wanted = {"completed"} if "-c" in words else {"active", "eligible", "blocked"}
    sections: dict[str, list[str]] = {name: [] for name in sorted(wanted)}
    for job in queue.jobs():
        if _section(job) in sections:
            sections[_section(job)].append(_element(job))
    print('<Data><Object>queue</Object><cluster LocalActiveNodes="1"/>', end="")
    for name, jobs in sections.items():
        print(f'<queue count="{len(jobs)}" option="{name}">{"".join(jobs)}</queue>', end="")
    print("</Data>")
    return 0


def _section(job: Job) -> str:
    waiting = "blocked" if job.after else "eligible"
    return {"waiting": waiting, "running": "active", "over": "completed"}[job.state]


def _element(job: Job) -> str:
    fields = {"DRMJID": f"{job.number}.mgr", "JobID": str(job.number), "JobName": job.name}
    fields["State"] = _state(job)
    fields |= {"ReqAWDuration": str(int(job.walltime)), "User": "alice"}
    if job.state == "over":
        fields["CompletionCode"] = _code(job)
    return f"<job {' '.join(f'{name}={quoteattr(value)}' for name, value in fields.items())}/>"


def _state(job: Job) -> str:
    waiting = "Hold" if job.after else "Idle"
    return {"waiting": waiting, "running": "Running", "over": "Completed"}[job.state]


def _code(job: Job) -> str:
    return {"time": "-11", "cancelled": "CNCLD", "never ran": "CNCLD"}.get(job.how, str(job.code))


def showstart(words: list[str], queue: Queue) -> int:
    """Each job that is not over takes an hour, as far as this one guesses."""
    processors, _, duration = words[0].partition("@")
    wait = 3600 * sum(job.state != "over" for job in queue.jobs())
    start = time.strftime("%a %b %d %H:%M:%S", time.localtime(time.time() + wait))
    print(f"job {processors}@{duration} requires {processors} procs for {duration}\n")
    print(f"Estimated Rsv based start in {wait // 3600:>20}:00:00 on {start}\n")
    print("Best Partition: SharedMem")
    return 0


def checkjob(words: list[str], queue: Queue) -> int:
    job = queue.job(int(words[0]))
    if job is None:
        print(f"ERROR:  invalid job specified: {words[0]}", file=sys.stderr)
        return 1
    print(f"job {job.number}\n\nAName: {job.name}\nState: {_state(job)} ")
    if job.state == "over":
        print(f"Complete Time:  {time.ctime(job.ended)}\n  Completion Code: {_code(job)}")
    print("Creds:  user:alice group:alice class:batch\n")
    return 0


def canceljob(words: list[str], queue: Queue) -> int:
    code = 0
    for name in words:
        if queue.cancel(int(name)):
            print(f"\njob '{name}' cancelled\n")
        else:
            print(f"ERROR:  invalid job specified ({name})", file=sys.stderr)
            code = 1
    return code
