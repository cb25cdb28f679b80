"""Runs whose jobs are forked from this process, which has imported PyTorch and not used it.

So a job begins in milliseconds, and a thousand of them are possible.
"""

import contextlib
import os
import shutil
import sys
import time
import traceback

import numpy.random  # noqa: F401
import torch._dynamo  # noqa: F401 (optimizers import it, which takes longer than a job)
from tests.training.exact import harm, plain

PLACE = "forked"


class Forked:
    """Interrupts such runs until `wanted` is reached; `done` counts what was done to them."""

    def __init__(self, scratch, words, chance, wanted, done):
        self.scratch = scratch
        self.words = words
        self.chance = chance
        self.wanted = wanted
        self.done = done

    def wants_more(self):
        return any(self.done[PLACE, name] < count for name, count in self.wanted.items())

    def one_run(self):
        """What one run left at its end, however many jobs that took."""
        folder = self.scratch / "run"
        full = self.done[PLACE, "full disks"] < self.wanted["full disks"]
        disk = harm.small_disk(folder, self.chance.choice(harm.DISKS))
        with disk if full else contextlib.nullcontext():
            while not (folder / "weights").exists() or not (folder / "weights").read_text():
                self.one_job(folder, full)
            found = left_by(folder)
        shutil.rmtree(folder, ignore_errors=True)
        return found

    def one_job(self, folder, full):
        log = self.scratch / "log"
        log.write_text("")
        # The number of workers changes from job to job: it must not matter.
        workers = self.chance.choice(["0", "0", "1", "2", "4"])
        pid = start([str(folder), *self.words, "--workers", workers], log)
        ballast = folder / "ballast"
        if full and self.chance.random() < 0.5:
            time.sleep(self.chance.uniform(0.2, 0.6))
            harm.fill(ballast)
        try:
            self.interrupt(pid, folder)
        finally:
            harm.kill(-pid)  # what is left of it, and of its workers
        ballast.unlink(missing_ok=True)
        failed = log.read_text().count("could not be saved: No space left")
        self.done["saves without space"] += failed
        self.done[PLACE, "full disks"] += failed > 0
        if self.wants_more() and self.chance.random() < 0.4:
            self.done[PLACE, "damages"] += harm.damage(folder, self.chance)

    def interrupt(self, pid, folder):
        """Kill the job, or one of its workers, unless it ends before."""
        before, partial = set(folder.glob("ckpt-*")), set(folder.glob("*.partial"))
        if not self.wants_more():
            return ended(pid)
        if self.chance.random() < 0.8 and not wait(
            pid, lambda: set(folder.glob("ckpt-*[0-9]")) - before, 30.0
        ):
            return None
        if not wait(pid, lambda: False, self.chance.uniform(0.0, 0.5)):
            return None
        if self.chance.random() < 0.4 and not wait(  # as soon as a checkpoint is being written
            pid, lambda: set(folder.glob("*.partial")) - partial, 1.0
        ):
            return None
        workers = children(pid)
        if workers and self.chance.random() < 0.2:
            harm.kill(self.chance.choice(workers))
            victim = "worker"
        else:
            harm.kill(pid)
            victim = "program"
        ended(pid)
        if victim == "program" and set(folder.glob("*.partial")) - partial:
            victim = "writer"  # which is a thread: a kill ends it in the middle of its work
        self.done[PLACE, "kills", victim] += 1
        self.done[PLACE, "kills"] += 1
        return None


def start(argv, log):
    """A job in a process of its own, in a process group of its own."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    code = 1
    try:
        plain.main(argv)
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def wait(pid, condition, seconds):
    """Whether the job still runs when `condition` holds or the time is over."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not condition():
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            ended(pid)
            return False
        time.sleep(0.002)
    return True


def ended(pid):
    os.waitpid(pid, 0)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as stream:
            return [int(one) for one in stream.read().split()]
    except OSError:
        return []


def left_by(folder):
    return (folder / "weights").read_text(), (folder / "metrics.jsonl").read_text()
