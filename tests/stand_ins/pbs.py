"""Stands in for OpenPBS 23.06: qsub, qstat -x -f -F json, qdel, qselect."""

import json
import sys
import time

from engine import Job, Queue
from submission import Refused, read

SERVER = "pbshost"
KNOWN = {"walltime", "select", "place"}
QUEUES = {"", "workq", "gpu"}


def main(program: str, words: list[str], queue: Queue) -> int:
    return {"qsub": qsub, "qstat": qstat, "qdel": qdel, "qselect": qselect}[program](words, queue)


def qsub(words: list[str], queue: Queue) -> int:
    try:
        asked = read(words, "qsub: script file:: No such file or directory")
        for name in asked.resources.keys() - KNOWN:
            raise Refused(f"qsub: Unknown resource Resource_List.{name}", 187)
        if asked.resources["walltime"].count(":") > 2:
            raise Refused("qsub: Illegal attribute or resource value Resource_List.walltime", 166)
        if asked.options.get("-q", "") not in QUEUES:
            raise Refused("qsub: Unknown queue", 170)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return refused.code
    number = len(queue.jobs())
    after = [int(job.partition(".")[0]) for job in asked.after]
    job = Job(
        0, asked.name, [], asked.walltime, after,
        environment={
            "PBS_JOBID": f"{number}.{SERVER}", "PBS_JOBNAME": asked.name,
            "PBS_ENVIRONMENT": "PBS_BATCH", "PBS_QUEUE": "workq",
        },
        output=asked.output(number),
    )  # fmt: skip
    print(f"{queue.submit(job, asked.script).number}.{SERVER}")
    return 0


def qstat(words: list[str], queue: Queue) -> int:
    if words[:2] == ["-Q", "-f"]:
        return queue_status(words[2], QUEUES)
    if words[:5] != ["-t", "-x", "-f", "-F", "json"]:
        print("qstat: conflicting options.", file=sys.stderr)
        return 2
    code, told = 0, {}
    for name in words[5:] or [str(job.number) for job in queue.jobs()]:
        number = name.partition(".")[0]
        job = queue.job(int(number)) if number.isdecimal() else None
        if job is None:
            print(f"qstat: Unknown Job Id {number}.{SERVER}", file=sys.stderr)
            code = 153
        else:
            told[f"{number}.{SERVER}"] = _attributes(job)
    answer = {"timestamp": int(time.time()), "pbs_version": "23.06.06", "pbs_server": SERVER}
    print(json.dumps({**answer, **({"Jobs": told} if told else {})}, indent="\t"))
    return code


def queue_status(name: str, known: set[str]) -> int:
    if name not in known:
        print(f"qstat: Unknown queue {name}", file=sys.stderr)
        return 170
    print(f"Queue: {name}\n    queue_type = Execution\n    enabled = True\n    started = True\n")
    return 0


def _attributes(job: Job) -> dict[str, object]:
    told: dict[str, object] = {
        "Job_Name": job.name,
        "Job_Owner": f"alice@{SERVER}",
        "job_state": {"waiting": "H" if job.after else "Q", "running": "R", "over": "F"}[job.state],
        "queue": "workq",
        "Variable_List": {"PBS_O_HOME": "/home/alice", "ZIP": 123},
    }
    if job.after and job.state == "waiting":
        told["depend"] = f"afterany:{job.after[0]}.{SERVER}@{SERVER}"
    if job.started:
        told |= {"run_count": 1, "stime": time.ctime(job.started), "exec_host": f"{SERVER}/0"}
    if job.state == "over" and job.how != "never ran":
        told["Exit_status"] = {"time": -29, "cancelled": 271}.get(job.how, job.code)
    return told


def qdel(words: list[str], queue: Queue) -> int:
    code = 0
    for name in words:
        number = int(name.partition(".")[0])
        if queue.cancel(number):
            continue
        known = queue.job(number) is not None
        why = "Job has finished" if known else "Unknown Job Id"
        print(f"qdel: {why} {number}.{SERVER}", file=sys.stderr)
        code = 35 if known else 153
    return code


def qselect(words: list[str], queue: Queue) -> int:
    name = words[words.index("-N") + 1]
    for job in queue.jobs():
        if job.name == name and job.state == "waiting":
            print(f"{job.number}.{SERVER}")
    return 0
