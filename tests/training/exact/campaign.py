"""Kills, damaged checkpoints and full disks, until every run still equals the undisturbed one.

`make campaign` runs it long, `make campaign KILLS=30` briefly, the suite more briefly still. The
exit code is 0 if all runs were equal; the last line gives the counts.

Links are forked from this process, which has imported PyTorch and done nothing with it, so that a
link begins in milliseconds and a thousand of them are possible.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import carried
import plain

RUN = ["--samples", "1200", "--epochs", "4", "--save-every", "5"]
_KILLS_OF_A_RUN = 5  # on `here`, where a link begins in seconds
DAMAGES = ("truncated", "bit flipped", "manifest removed", "emptied")


def main():
    words = argparse.ArgumentParser(description="Interrupt trainings and compare their ends.")
    words.add_argument("--kills", type=int, default=1000)
    words.add_argument("--damages", type=int, default=None)
    words.add_argument("--full", type=int, default=None)
    words.add_argument("--on-here", type=int, default=None, help="kills of runs on `here`")
    words.add_argument("--seed", default="20261115")
    asked = words.parse_args()
    wanted = Counter(
        kills=asked.kills,
        damages=asked.kills * 3 // 10 if asked.damages is None else asked.damages,
        full=asked.kills // 10 if asked.full is None else asked.full,
    )
    on_here = asked.kills // 20 if asked.on_here is None else asked.on_here
    with tempfile.TemporaryDirectory() as scratch:
        campaign = Campaign(Path(scratch), random.Random(asked.seed), wanted)
        return campaign.run(on_here)


class Campaign:
    def __init__(self, scratch, chance, wanted):
        self.scratch = scratch
        self.chance = chance
        self.wanted = wanted
        self.done = Counter()

    def run(self, on_here):
        reference = self.scratch / "undisturbed"
        os.waitpid(start([str(reference), *RUN], self.scratch / "log"), 0)
        expected = left_by(reference)
        while self.wants_more():
            self.count(self.one_run() == expected)
        while self.done["kills on here"] < on_here:
            kills = min(_KILLS_OF_A_RUN, on_here - self.done["kills on here"])
            folder = self.scratch / f"carried-{self.done['equal']}"
            found, done = carried.one_run(folder, RUN, self.chance, kills)
            self.done += done
            self.count(found == expected)
        counts = ", ".join(f"{name} {self.done[name]}" for name in sorted(self.done))
        print(f"campaign: {counts}")
        return 1 if self.done["different"] or not self.done["equal"] else 0

    def count(self, equal):
        self.done["equal" if equal else "different"] += 1
        print(dict(self.done), flush=True)

    def wants_more(self):
        return any(self.done[name] < self.wanted[name] for name in self.wanted)

    def one_run(self):
        """One run to its end, however many links that takes."""
        folder = self.scratch / f"run-{self.done['equal'] + self.done['different']}"
        full = self.done["full"] < self.wanted["full"]
        with small_disk(folder) if full else contextlib.nullcontext():
            while not (folder / "weights").exists() or not (folder / "weights").read_text():
                self.one_link(folder, full)
            found = left_by(folder)
        shutil.rmtree(folder, ignore_errors=True)
        return found

    def one_link(self, folder, full):
        log = self.scratch / "log"
        log.write_text("")
        # The number of workers changes from link to link: it must not matter.
        workers = self.chance.choice(["0", "0", "1", "2"])
        pid = start([str(folder), *RUN, "--workers", workers], log)
        self.done["links"] += 1
        ballast = folder / "ballast"
        if full and self.chance.random() < 0.5:
            time.sleep(self.chance.uniform(0.2, 0.6))
            fill(ballast)
        self.interrupt(pid, folder)
        ballast.unlink(missing_ok=True)
        self.done["full"] += log.read_text().count("could not be saved: No space left")
        if self.wants_more() and self.chance.random() < 0.4:
            self.damage(folder)

    def interrupt(self, pid, folder):
        """Kill the link, or one of its workers, unless it ends before."""
        before = set(folder.glob("ckpt-*"))
        if not self.wants_more():
            return ended(pid)
        if self.chance.random() < 0.8 and not wait(
            pid, lambda: set(folder.glob("ckpt-*[0-9]")) - before, 30.0
        ):
            return None
        if not wait(pid, lambda: False, self.chance.uniform(0.0, 0.5)):
            return None
        if self.chance.random() < 0.4 and not wait(  # as soon as a checkpoint is being written
            pid, lambda: any(folder.glob("*.partial")), 1.0
        ):
            return None
        victims = children(pid)
        if victims and self.chance.random() < 0.2:
            kill(self.chance.choice(victims))
            self.done["kills of workers"] += 1
        else:
            kill(pid)
        self.done["kills"] += 1
        ended(pid)
        kill(-pid)  # what is left of its workers
        return None

    def damage(self, folder):
        newest = max(folder.glob("ckpt-*[0-9]"), default=None)
        if newest is None:
            return
        how = self.chance.choice(DAMAGES)
        victim = self.chance.choice([path for path in sorted(newest.iterdir()) if path.is_file()])
        content = bytearray(victim.read_bytes())
        if not content:
            return  # damaged before, and not met since
        if how == "manifest removed":
            (newest / "COMMIT.json").unlink()
        elif how == "emptied":
            for path in newest.iterdir():
                path.write_bytes(b"")
        elif how == "truncated":
            victim.write_bytes(content[: self.chance.randrange(len(content))])
        else:
            content[self.chance.randrange(len(content))] ^= 1 << self.chance.randrange(8)
            victim.write_bytes(content)
        self.done["damages"] += 1


def start(argv, log):
    """A link in a process of its own, in a process group of its own."""
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
    """Whether the link still runs when `condition` holds or the time is over."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not condition():
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            ended(pid)
            return False
        time.sleep(0.002)
    return True


def ended(pid):
    os.waitpid(pid, 0)


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def children(pid):
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def left_by(folder):
    return (folder / "weights").read_text(), (folder / "metrics.jsonl").read_text()


@contextlib.contextmanager
def small_disk(folder):
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(path):
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(4096))


if __name__ == "__main__":
    sys.exit(main())
