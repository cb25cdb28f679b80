"""Stands in for Torque: qsub, qstat -x, qdel, qselect."""

import sys
from xml.sax.saxutils import escape

from engine import Job, Queue
from pbs import qselect as pbs_qselect
from pbs import queue_status
from submission import Asked, Refused, read

SERVER = "tqhost"
KNOWN = {"walltime", "nodes", "mem", "feature", "naccesspolicy", "procs"}
QUEUES = {"", "batch", "gpu"}


def main(program: str, words: list[str], queue: Queue) -> int:
    chosen = {"qsub": qsub, "qstat": qstat, "qdel": qdel, "qselect": pbs_qselect}
    return chosen[program](words, queue)


def qsub(words: list[str], queue: Queue) -> int:
    try:
        asked = checked(words, queue)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return refused.code
    number = len(queue.jobs())
    job = Job(
        0, asked.name, [], asked.walltime, [_number(parent) for parent in asked.after],
        environment={
            "PBS_JOBID": f"{number}.{SERVER}", "PBS_JOBNAME": asked.name,
            "PBS_WALLTIME": str(int(asked.walltime)), "PBS_VERSION": "TORQUE-master",
        },
        output=asked.output(number),
    )  # fmt: skip
    print(f"{queue.submit(job, asked.script).number}.{SERVER}")
    return 0


def checked(words: list[str], queue: Queue) -> Asked:
    asked = read(words, "qsub: script file '{script}' cannot be loaded - No such file or directory")
    for name in asked.resources.keys() - KNOWN:
        raise Refused(f"qsub: submit error (Unknown resource type  Resource_List.{name})", 189)
    if asked.options.get("-q", "") not in QUEUES:
        raise Refused("qsub: submit error (Unknown queue MSG=requested queue not found)", 172)
    allowed = queue.spool / "jobs-allowed"
    if allowed.exists() and len(queue.jobs()) >= int(allowed.read_text()):
        raise Refused(
            "qsub: submit error (Maximum number of jobs already in queue for user MSG=total number"
            " of current user's jobs exceeds the queue limit: user alice, queue batch)",
            158,
        )
    for parent in asked.after:
        job = queue.job(_number(parent))
        if job is None or job.state == "over":
            raise Refused("qsub: submit error (Invalid Job Dependency)", 208)
    return asked


def qstat(words: list[str], queue: Queue) -> int:
    if words[:2] == ["-Q", "-f"]:
        return queue_status(words[2], QUEUES)
    code, told = 0, ""
    if words[0] == "-f":  # in full, as far as anybody reads it
        job = queue.job(_number(words[1]))
        if job is not None:
            print(f"Job Id: {job.number}.{SERVER}\n    Job_Name = {job.name}\n")
            return 0
    for name in words[1:] or [str(job.number) for job in queue.jobs()]:
        job = queue.job(_number(name))
        if job is None:
            print(f"qstat: Unknown Job Id Error {_number(name)}.{SERVER}", file=sys.stderr)
            code = 153
        else:
            told += _element(job)
    if told:
        print(f"<Data>{told}</Data>")
    return code


def _element(job: Job) -> str:
    state = {"waiting": "H" if job.after else "Q", "running": "R", "over": "C"}[job.state]
    fields = {"Job_Id": f"{job.number}.{SERVER}", "Job_Name": job.name, "job_state": state}
    if job.after and state == "H":
        fields["depend"] = f"afterany:{job.after[0]}.{SERVER}@{SERVER}"
    if job.started:
        fields |= {"start_time": str(int(job.started)), "start_count": "1"}
    if state == "C":
        code = {"time": -11, "cancelled": 271}.get(job.how, job.code)
        fields |= {"exit_status": str(code), "comp_time": str(int(job.ended))}
    inside = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in fields.items())
    used = "<resources_used><walltime>00:00:01</walltime></resources_used>"
    return f"<Job>{inside}{used}</Job>"


def qdel(words: list[str], queue: Queue) -> int:
    code = 0
    for name in words:
        number = _number(name)
        if queue.cancel(number):
            continue
        if queue.job(number) is None:
            print(f"qdel: nonexistent job id: {number}", file=sys.stderr)
            code = 153
        else:
            why = "Request invalid for state of job MSG=invalid state for job - COMPLETE"
            print(f"qdel: {why} {number}.{SERVER}", file=sys.stderr)
            code = 170
    return code


def _number(name: str) -> int:
    return int(name.partition(".")[0])
