"""`make search-campaign`: SIGKILL at random over workers, agents and programs, and torn files.

Every trial has one result in the end, the right one; a result that was there never changes; and
the table is right after each harm.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import rabaska
from rabaska.domain.search import FINISHED, SearchState

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
    words.add_argument("--trials", type=int, default=0, help="when left out, one for two kills")
    words.add_argument("--seed", type=int, default=0)
    asked = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return Campaign(Path(folder), asked).run()


class Campaign:
    def __init__(self, folder: Path, asked: argparse.Namespace) -> None:
        os.environ["RABASKA_HOME"] = str(folder / "home")
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
        kills, torn, began = 0, 0, time.monotonic()
        harms = ["kill"] * self.asked.kills + ["tear"] * self.asked.torn
        self.draw.shuffle(harms)
        while True:
            found = self.check()
            if found.state == SearchState.FINISHED:
                break
            if found.state == SearchState.INTERRUPTED:
                self.again += 1
                rabaska.search.more(0)
            if harms and harms[-1] == "tear":
                torn += self.tear()
                harms.pop()
            elif harms and self.kill():
                kills += 1
                harms.pop()
            time.sleep(self.draw.random() * 0.2)
        return self.verdict(kills, torn, time.monotonic() - began)

    def check(self) -> "rabaska.domain.search.SearchStatus":  # type: ignore[name-defined]
        """The table, after each harm: numbers once, and no result that was there is another now."""
        found = rabaska.search.status()
        numbers = [trial.number for trial in found.trials]
        assert len(numbers) == len(set(numbers)), "a trial is listed twice"
        for trial in found.trials:
            if trial.value is not None:
                before = self.known.setdefault(trial.number, trial.value)
                assert before == trial.value, f"trial {trial.number}: {before}, now {trial.value}"
        return found

    def kill(self) -> bool:
        victims = [pid for pid in _processes() if self._is_ours(pid)]
        if not victims:
            return False
        try:
            os.kill(self.draw.choice(victims), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def _is_ours(self, pid: int) -> bool:
        words = _words(pid)
        return (b"work" in words and self.path.encode() in words) or (
            str(self.witness).encode() in words
        )

    def tear(self) -> int:
        """Cut a file of the study short, as a crashed server may."""
        files = [one for one in Path(self.path, "trials").rglob("0*.json") if one.is_file()]
        if not files:
            return 0
        chosen = self.draw.choice(files)
        try:
            content = chosen.read_bytes()
            chosen.write_bytes(content[: self.draw.randrange(max(1, len(content)))])
        except OSError:
            return 0
        return 1

    def verdict(self, kills: int, torn: int, seconds: float) -> int:
        found = self.check()
        wrong = [one for one in found.trials if one.state == FINISHED and not _is_right(one)]
        failed = [one for one in found.trials if one.state != FINISHED]
        ends = [one.name.rpartition(".")[0] for one in self.witness.iterdir()]
        twice = len(ends) - len(set(ends))
        print(
            f"{kills} kills, {torn} torn files, {self.again} times no worker was left; "
            f"{len(found.trials)} of {self.trials} trials have one result, {len(failed)} of them "
            f"failed, {len(wrong)} wrong; {twice} programs came to their end twice; {seconds:.0f} s"
        )
        for one in failed[:5]:
            print(f"  trial {one.number}: {one.state}: {one.why}")
        return 1 if wrong or len(found.trials) != self.trials else 0


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
