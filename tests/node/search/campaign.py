"""`make search-campaign`: SIGKILL over workers, agents and programs, torn files and full disks.

Every trial has one result in the end, the right one; none is run twice to its end; a result that
was there never changes; and the table is right after each harm. Disks are only filled where we may
mount one of our own.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import rabaska
from rabaska.domain.search import FINISHED, SearchState
from rabaska.errors import WrongUse
from rabaska.node.search import commands
from rabaska.node.search.study import Study

TRAIN = """
import argparse, json, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--output")
parser.add_argument("--resume")
parser.add_argument("--witness")
options = parser.parse_args()
step = json.load(open(options.resume))["step"] if options.resume else 0
while step < 10:
    step += 1
    time.sleep(0.02)
    print("step", step, "score", options.x * step, flush=True)
    name = os.path.join(options.output, "checkpoint-%04d.json" % step)
    with open(name + ".tmp", "w") as stream:
        json.dump({"step": step}, stream)
    os.replace(name + ".tmp", name)
    if step == 10:
        open(os.path.join(options.witness, "%s.%d" % (options.x, os.getpid())), "w").close()
"""
SETTINGS = """
name = "campaign"
command = "{python} train.py --output {{output}} --resume {{checkpoint}} --witness {witness}"
[resources]
walltime = "1h"
[search]
metric = "score"
goal = "max"
method = "grid"
at_once = 4
[search.space]
x = {values}
"""


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--kills", type=int, default=100)
    words.add_argument("--torn", type=int, default=10)
    words.add_argument("--full", type=int, default=2, help="how often the disk is full")
    words.add_argument("--trials", type=int, default=0, help="when left out, one for two kills")
    words.add_argument("--seed", type=int, default=0)
    asked = words.parse_args()
    with tempfile.TemporaryDirectory() as folder, _disk(Path(folder, "disk")) as disk:
        return Campaign(Path(folder), disk, asked).run()


@contextmanager
def _disk(folder: Path) -> Iterator[Path | None]:
    """A disk of our own for the store; None where nobody may mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


class Campaign:
    def __init__(self, folder: Path, disk: Path | None, asked: argparse.Namespace) -> None:
        os.environ["RABASKA_HOME"] = str((disk or folder) / "home")
        self.disk = disk
        self.asked, self.draw = asked, random.Random(asked.seed)
        self.trials = asked.trials or max(20, asked.kills // 2)
        self.witness, self.project = folder / "witness", folder / "project"
        for made in (self.witness, self.project):
            made.mkdir()
        values = [float(number) for number in range(1, self.trials + 1)]
        settings = SETTINGS.format(python=sys.executable, witness=self.witness, values=values)
        (self.project / "rabaska.toml").write_text(settings)
        (self.project / "train.py").write_text(TRAIN)
        self.known: dict[int, float] = {}
        self.again = 0

    def run(self) -> int:
        started = rabaska.search.run(self.project, doctor=False)
        self.path = started.path
        done, began = {"kill": 0, "tear": 0, "fill": 0}, time.monotonic()
        harms = ["kill"] * self.asked.kills + ["tear"] * self.asked.torn
        harms += ["fill"] * (self.asked.full if self.disk else 0)
        self.draw.shuffle(harms)
        planned = len(harms)
        while True:
            # As many harms as trials ended, in proportion: so a slow computer gets on as well.
            due = (len(self.known) + 3) * planned / self.trials
            harmed = sum(done.values()) < due and bool(harms) and getattr(self, harms[-1])()
            if harmed:
                done[harms.pop()] += 1
            # The command is asked as well, now and then: it takes longer than a trial.
            self.look()
            if not self.workers() or sum(done.values()) % 25 == 0 or len(self.known) == self.trials:
                state = self.check().state
                if state == SearchState.FINISHED:
                    break
                if state == SearchState.INTERRUPTED:
                    self.go_on()
            time.sleep(self.draw.random() * 0.2)
        return self.verdict(done, time.monotonic() - began) or (1 if harms else 0)

    def look(self) -> None:
        """The table as its folder has it, which is what the command shows."""
        report = commands.report(Study(self.path))
        self.compare([(one["number"], one["value"]) for one in report["trials"]])

    def go_on(self) -> None:
        self.again += 1
        with suppress(WrongUse):  # what a worker left behind has just ended the last trial
            rabaska.search.more(0)

    def check(self) -> "rabaska.domain.search.SearchStatus":  # type: ignore[name-defined]
        """The table, after each harm: numbers once, and no result that was there is another now."""
        found = rabaska.search.status()
        self.compare([(trial.number, trial.value) for trial in found.trials])
        return found

    def compare(self, listed: list[tuple[int, float | None]]) -> None:
        assert len({number for number, _ in listed}) == len(listed), "a trial is listed twice"
        for number, value in listed:
            if value is not None:
                before = self.known.setdefault(number, value)
                assert before == value, f"trial {number}: {before}, now {value}"

    def kill(self) -> bool:
        victims = self.workers()
        if not victims:
            return False
        try:
            os.kill(self.draw.choice(victims), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def workers(self) -> list[int]:
        """Workers, agents and programs."""
        return [pid for pid in _processes() if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        words = _words(pid)
        return (b"work" in words and self.path.encode() in words) or (
            str(self.witness).encode() in words
        )

    def fill(self) -> bool:
        """Fill the disk for some moments; nothing that is written meanwhile succeeds."""
        assert self.disk is not None
        filler = self.disk / "filler"
        try:
            with filler.open("wb") as stream:
                while True:
                    stream.write(b"\1" * (1 << 20))
                    stream.flush()
        except OSError:
            pass
        time.sleep(self.draw.random() * 2)
        self.check()
        filler.unlink()
        return True

    def tear(self) -> bool:
        """Cut a file of the study short, as a crashed server may."""
        files = [one for one in Path(self.path, "trials").rglob("[0a]*.json") if one.is_file()]
        if not files:
            return False
        chosen = self.draw.choice(files)
        try:
            content = chosen.read_bytes()
            chosen.write_bytes(content[: self.draw.randrange(max(1, len(content)))])
        except OSError:
            return False
        return True

    def verdict(self, done: dict[str, int], seconds: float) -> int:
        found = self.check()
        wrong = [one for one in found.trials if one.state == FINISHED and not _is_right(one)]
        failed = [one for one in found.trials if one.state != FINISHED]
        ends = [one.name.rpartition(".")[0] for one in self.witness.iterdir()]
        twice = len(ends) - len(set(ends))
        print(
            f"{done['kill']} kills, {done['tear']} torn files, {done['fill']} full disks, "
            f"{self.again} times no worker was left; "
            f"{len(found.trials)} of {self.trials} trials have one result, {len(failed)} of them "
            f"failed, {len(wrong)} wrong; {twice} programs came to their end twice; {seconds:.0f} s"
        )
        for one in failed[:5]:
            print(f"  trial {one.number}: {one.state}: {one.why}")
        return 1 if wrong or failed or twice or len(found.trials) != self.trials else 0


def _is_right(trial: "rabaska.domain.search.Trial") -> bool:  # type: ignore[name-defined]
    return bool(trial.value == trial.values["x"] * 10)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main())
