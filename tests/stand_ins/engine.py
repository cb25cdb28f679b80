"""A queue that truly runs what is submitted, behind all the stand-ins.

Each job is a file `<number>.json` in the spool, and a process of its own that waits for the jobs
before it, runs the job with its limit, and writes down how it ended. Nothing here knows how any
scheduler spells things.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

POLL = 0.1  # seconds
KILL_DELAY = 0.2  # seconds between SIGTERM and SIGKILL, as measured with Torque


@dataclass
class Job:
    number: int
    name: str
    words: list[str]  # what is run
    walltime: float  # seconds
    after: list[int] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    output: str = ""  # where what it printed is brought when it is over
    state: str = "waiting"  # waiting, running, over
    how: str = ""  # of a job that is over: "", "time", "cancelled", "never ran"
    code: int = 0  # exit code, or 256 and the signal
    submitted: float = 0.0
    started: float = 0.0
    ended: float = 0.0


class Queue:
    def __init__(self, spool: str | Path) -> None:
        self.spool = Path(spool)
        self.spool.mkdir(parents=True, exist_ok=True)

    def submit(self, job: Job, script: str = "") -> Job:
        """Number the job, keep a copy of its script as real ones do, and let it go its way."""
        with (self.spool / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            job.number += len(list(self.spool.glob("*.json")))
            job.submitted = time.time()
            if script:
                copy = self.spool / f"{job.number}.SC"
                shutil.copyfile(script, copy)
                job.words = ["/bin/bash", str(copy)]
            self.write(job)
        words = [sys.executable, __file__, str(self.spool), str(job.number)]
        with (self.spool / "engine.log").open("ab") as log:
            subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                cwd="/",
            )  # fmt: skip
        return job

    def write(self, job: Job) -> None:
        partial = self.spool / f"{job.number}.partial"
        partial.write_text(json.dumps(asdict(job)))
        partial.rename(self.spool / f"{job.number}.json")

    def job(self, number: int) -> Job | None:
        try:
            return Job(**json.loads((self.spool / f"{number}.json").read_text()))
        except FileNotFoundError:
            return None

    def jobs(self) -> list[Job]:
        numbers = sorted(int(file.stem) for file in self.spool.glob("*.json"))
        return [job for number in numbers if (job := self.job(number))]

    def cancel(self, number: int) -> bool:
        """Whether there was anything to cancel."""
        job = self.job(number)
        if job is None or job.state == "over":
            return False
        (self.spool / f"{number}.cancelled").touch()
        return True

    def is_cancelled(self, number: int) -> bool:
        return (self.spool / f"{number}.cancelled").exists()


def carry_out(queue: Queue, number: int) -> None:
    """The whole life of one job."""
    job = queue.job(number)
    assert job is not None
    while not queue.is_cancelled(number) and not all(_is_over(queue, other) for other in job.after):
        time.sleep(POLL)
    if queue.is_cancelled(number):
        job.how, job.code = "never ran", 271
    else:
        job.state, job.started = "running", time.time()
        queue.write(job)
        job.how, job.code = _run(queue, job)
    job.state, job.ended = "over", time.time()
    queue.write(job)


def _is_over(queue: Queue, number: int) -> bool:
    job = queue.job(number)
    return job is None or job.state == "over"


def _run(queue: Queue, job: Job) -> tuple[str, int]:
    printed = queue.spool / f"{job.number}.OU"
    local = queue.spool / "local" / str(job.number)
    local.mkdir(parents=True)
    home = {name: os.environ[name] for name in ("HOME", "USER", "PATH") if name in os.environ}
    environment = {**home, "TMPDIR": str(local), **job.environment}
    with printed.open("wb") as output:
        process = subprocess.Popen(
            job.words, env=environment, cwd=home.get("HOME", "/"), stdin=subprocess.DEVNULL,
            stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
        how = _watch(queue, job, process)
    shutil.rmtree(local, ignore_errors=True)
    if job.output:
        with contextlib.suppress(OSError):
            shutil.copyfile(printed, job.output)
    code = process.returncode
    return how, code if code >= 0 else 256 - code


def _watch(queue: Queue, job: Job, process: "subprocess.Popen[bytes]") -> str:
    while process.poll() is None:
        if queue.is_cancelled(job.number):
            _end(process)
            return "cancelled"
        if time.time() - job.started > job.walltime:
            _end(process)
            return "time"
        time.sleep(POLL)
    return ""


def _end(process: "subprocess.Popen[bytes]") -> None:
    os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(KILL_DELAY)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    carry_out(Queue(sys.argv[1]), int(sys.argv[2]))
