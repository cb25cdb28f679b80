"""Stands in for OpenPBS 23.06: qsub, qstat -f and -x -f, qdel, qselect."""

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
    if words == ["-B", "-f"]:
        print(f"Server: {SERVER}\n    server_state = Active\n    default_queue = workq\n")
        return 0
    history = words[:2] == ["-x", "-f"]
    if not history and words[:1] != ["-f"]:
        print("qstat: conflicting options.", file=sys.stderr)
        return 2
    code = 0
    for name in words[2 if history else 1 :]:
        code = _tell(name.partition(".")[0], queue, history=history) or code
    return code


def _tell(number: str, queue: Queue, *, history: bool) -> int:
    """One job. A new server keeps no history of what is over: the file `history` stands for one."""
    kept = (queue.spool / "history").exists()
    job = queue.job(int(number)) if number.isdecimal() else None
    if history and not kept:
        print(f"qstat: PBS is not configured to maintain job history {number}.{SERVER}",
              file=sys.stderr)  # fmt: skip
        return 0
    if job is None or (job.state == "over" and not kept):
        print(f"qstat: Unknown Job Id {number}.{SERVER}", file=sys.stderr)
        return 153
    if job.state == "over" and not history:
        use = "use -x or -H to obtain historical job information"
        print(f"qstat: {number}.{SERVER} Job has finished, {use}", file=sys.stderr)
        return 35
    lines = "".join(f"    {name} = {value}\n" for name, value in _attributes(job).items())
    print(f"Job Id: {number}.{SERVER}\n{lines}")
    return 0


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
        "Hold_Types": "s" if job.after and job.state == "waiting" else "n",
        "Variable_List": f"PBS_O_HOME=/home/alice,PBS_O_SYSTEM=Linux,\n\tPBS_O_HOST={SERVER}",
    }
    if job.after and job.state == "waiting":
        told["depend"] = f"afterany:{job.after[0]}.{SERVER}@{SERVER}"
    if job.started:
        told |= {"run_count": 1, "stime": time.ctime(job.started), "exec_host": f"{SERVER}/0"}
    if job.state == "over" and job.how != "never ran":
        how = {"time": "exceeded resource walltime", "cancelled": f"terminated by alice@{SERVER}"}
        told["comment"] = f"Job run on ({SERVER}:ncpus=1) and {how.get(job.how, 'ended')}"
        told["Exit_status"] = {"time": -29, "cancelled": 271}.get(job.how, job.code)
    return {**told, "Submit_arguments": "job.sh"}


def qdel(words: list[str], queue: Queue) -> int:
    code = 0
    for name in words:
        number = int(name.partition(".")[0])
        if queue.cancel(number):
            _cancel_those_after(number, queue)
            continue
        known = queue.job(number) is not None
        why = "Job has finished" if known else "Unknown Job Id"
        print(f"qdel: {why} {number}.{SERVER}", file=sys.stderr)
        code = 35 if known else 153
    return code


def _cancel_those_after(number: int, queue: Queue) -> None:
    """With a job that waits go those that wait for it; with one that runs they do not."""
    job = queue.job(number)
    if job is None or job.state != "waiting":
        return
    for other in queue.jobs():
        if number in other.after and other.state == "waiting":
            queue.cancel(other.number)
            _cancel_those_after(other.number, queue)


def qselect(words: list[str], queue: Queue) -> int:
    name = words[words.index("-N") + 1]
    for job in queue.jobs():
        if job.name == name and job.state == "waiting":
            print(f"{job.number}.{SERVER}")
    return 0
