"""Stands in for SHARCNET's sqsub, sqjobs and sqkill."""

import getopt
import os
import sys
import time

from engine import Job, Queue

FIRST = 222166
LONG = ["gpp=", "mpp=", "nompirun", "mail-start", "mail-end", "waitfor="]
MINUTES = {"m": 1, "h": 60, "d": 1440, "w": 10080}


def main(program: str, words: list[str], queue: Queue) -> int:
    return {"sqsub": sqsub, "sqjobs": sqjobs, "sqkill": sqkill}[program](words, queue)


def sqsub(words: list[str], queue: Queue) -> int:
    options, command = getopt.getopt(words, "r:o:q:j:n:f:N:w:", LONG)
    asked = dict(options)
    for needed in ("-r", "-o", "--mpp"):
        if needed not in asked:
            print(f"sqsub: {needed} is required")
            return 1
    if not command or not os.path.exists(command[0]):
        print(f"sqsub: cannot find {command[:1]}")
        return 1
    number = FIRST + len(queue.jobs())
    after = [int(job) for job in asked.get("-w", "").split(",") if job]
    job = Job(
        FIRST, asked.get("-j", "job"), command, minutes(asked["-r"]) * 60, after,
        environment={"PBS_JOBID": f"{number}.sq"}, output=asked["-o"].replace("%J", str(number)),
    )  # fmt: skip
    print(f"submitted as jobid {queue.submit(job).number}")
    return 0


def minutes(text: str) -> float:
    """`15m`, `2h`, `7d`, `1w`; a bare number is minutes."""
    return float(text) if text.isdecimal() else float(text[:-1]) * MINUTES[text[-1]]


def sqjobs(words: list[str], queue: Queue) -> int:
    jobs = queue.jobs()
    if words[:1] == ["-l"]:
        return in_full([job for job in jobs if str(job.number) in words])
    print(
        " jobid queue state ncpus  nodes time command\n------ ----- ----- ----- ------ ---- -------"
    )
    for job in jobs:
        since = f"{int(time.time() - (job.started or job.submitted))}s"
        node = "wha309" if job.state == "running" else ""
        print(f"{job.number} gpu   {_state(job):>5}     1 {node:6} {since:>4} {job.words[0]}")
    busy = sum(job.state == "running" for job in jobs)
    print(f"2460 CPUs total, 837 idle, 1623 busy; {busy} jobs running; 0 suspended, 0 queued.")
    return 0 if any(job.state != "over" for job in jobs) else 1


def in_full(jobs: list[Job]) -> int:
    for job in jobs:
        print(f"       jobid: {job.number}\n       queue: gpu\n       state: {_state(job)}")
        print(f"       ncpus: 1\n       nodes: wha309\n     command: {job.words[0]}")
    return 0


def _state(job: Job) -> str:
    if job.state == "over":
        return "K" if job.how else "D"
    return "R" if job.state == "running" else "*Q" if job.after else "Q"


def sqkill(words: list[str], queue: Queue) -> int:
    code = 0
    for name in words:
        if queue.cancel(int(name)):
            print(f"job {name} is being terminated")
        else:
            print(f"ERROR: no such job {name}", file=sys.stderr)
            code = 1
    return code
