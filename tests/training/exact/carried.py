"""Runs that rabaska carries to a cluster, killed at any moment and helped by nobody."""

import shutil
import time
from pathlib import Path

from tests.training.exact import harm, plain

import rabaska
from rabaska.domain.runs import RunState
from rabaska.node.record import events, jobs
from rabaska.node.record.run_folder import RunFolder

VICTIMS = ("program", "writer", "agent")
PATIENCE = 60.0  # seconds until the next job has begun

SETTINGS = """
name = "campaign"
command = "{python} train.py {{checkpoints}} {words}"

[resources]
walltime = "15m"
memory = "3 GB"

[chain]
jobs = 20

[environment.variables]
OMP_NUM_THREADS = "1"
RABASKA_LEASE_SECONDS = "4"
"""


class Carried:
    """One run; `done` counts what is done to it."""

    def __init__(self, cluster, folder, words, chance, done):
        self.cluster = cluster
        self.chance = chance
        self.done = done
        self.name = rabaska.run(project(folder, cluster, words), on=cluster.cluster).run
        self.run = RunFolder(str(cluster.path(rabaska.status(self.name).path)))
        self.interrupted = 0  # the number of the job that was killed last
        self.in_vain = False  # it had saved nothing new

    def to_its_end(self, kills):
        """What the run left that was killed so many times, or why it left nothing."""
        try:
            for _ in range(kills):
                self.interrupt()
            ended = rabaska.wait(self.name)
        except KeyboardInterrupt:
            rabaska.cancel(self.name)
            raise
        if ended.state is not RunState.FINISHED:
            return f"{ended.state.value}: {ended.reason}"
        return self.left()

    def interrupt(self):
        """Kill one of the next job's processes, unless the run ends before."""
        if not self.until(self.begun, PATIENCE):
            return
        victim = self.chance.choice(VICTIMS)
        before, partial = self.saved(), self.saved("*.partial")
        # A chain gives up after three jobs in a row that saved nothing, and is right to.
        if self.in_vain or self.chance.random() < 0.7:
            self.until(lambda: self.saved() - before, PATIENCE)
        time.sleep(self.chance.uniform(0.0, 1.0))
        if victim == "writer":
            self.until(lambda: self.saved("*.partial") - partial, 3.0)
        self.in_vain = not self.saved() - before
        if not self.kill(victim):
            return
        if victim != "agent":  # the writer is a thread of the program: it dies at work or at rest
            victim = "writer" if self.saved("*.partial") - partial else "program"
        self.done[self.cluster.place, "kills"] += 1
        self.done[self.cluster.place, "kills", victim] += 1
        if not self.in_vain and self.chance.random() < 0.3:
            self.in_vain = harm.damage(self.checkpoints(), self.chance)
            self.done[self.cluster.place, "damages"] += self.in_vain

    def begun(self):
        """Whether a job goes on that was not interrupted yet."""
        number = self.run.holder()
        begun = jobs.read_begun(self.run, number) if number > self.interrupted else None
        return begun is not None and jobs.read_ended(self.run, number) is None

    def kill(self, victim):
        """Whether there was somebody to kill."""
        number = self.run.holder()
        begun = jobs.read_begun(self.run, number)
        pid = begun.pid if victim == "agent" else self.program(number)
        if pid is None or jobs.read_ended(self.run, number) is not None:
            return False
        self.interrupted = number
        return self.cluster.kill(begun.host, pid)

    def program(self, number):
        """The pid of a job's program; None when it has not started."""
        told = [event for event in events.read(self.run) if event["event"] == "started"]
        return next((event["pid"] for event in told if event["job"] == number), None)

    def saved(self, names="ckpt-*[0-9]"):
        return {path.name for path in self.checkpoints().glob(names)}

    def checkpoints(self):
        return Path(self.run.checkpoints(self.run.holder()))

    def until(self, condition, seconds):
        """Wait for it; False when the run, or the time, is over before."""
        end = time.monotonic() + seconds
        while not condition():
            if Path(self.run.done).exists() or time.monotonic() > end:
                return False
            time.sleep(0.002)
        return True

    def left(self):
        losses = Path(self.run.output(self.run.holder())) / "metrics.jsonl"
        return (self.checkpoints() / "weights").read_text(), losses.read_text()


def project(folder, cluster, words):
    made = folder / "project"
    made.mkdir(parents=True)
    shutil.copy(plain.__file__, made / "train.py")
    settings = SETTINGS.format(python=cluster.python, words=" ".join(words))
    (made / "rabaska.toml").write_text(settings)
    return made
