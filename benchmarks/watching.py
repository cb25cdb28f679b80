"""What watching costs a program for each step, and how true the share of waiting is.

A program with known shares: its dataset sleeps, its work sleeps, and it adds up its own sleeps.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rows import Row

import rabaska

NAME = "watching"
ALLOWED = 2.0  # microseconds for each step
POINTS = 2.0  # between the share that is told and the truth
SHARES = (0, 30, 60, 95)  # percent of the time

# The cheapest step there is, watched and not watched in turns; prints what watching adds.
STEPS = """
import sys, time, torch
from torch.optim.optimizer import _global_optimizer_post_hooks as hooks
from torch.utils.data.dataloader import _BaseDataLoaderIter as Iterator

class Nothing(torch.utils.data.Dataset):
    def __len__(self):
        return 10**9

    def __getitem__(self, place):
        return 0

weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
loader = iter(torch.utils.data.DataLoader(Nothing(), batch_size=None, sampler=range(10**9)))
watched, attached = Iterator.__next__, dict(hooks)

def steps(count):
    began = time.process_time()
    for _ in range(count):
        next(loader)
        optimizer.step()
    return (time.process_time() - began) / count

def turn(watch):
    Iterator.__next__ = watched if watch else watched.__wrapped__
    hooks.update(attached) if watch else hooks.clear()
    steps(300)
    return min(steps(40) for _ in range(20))  # short ones, for what others do comes between

costs = [(turn(True), turn(False)) for _ in range(int(sys.argv[1]))]
print(min(watched for watched, _ in costs) - min(alone for _, alone in costs))
"""

# Prints the share of its time that it spent in its dataset.
WAITS = """
import sys, time, torch

SHARE, STEP, COUNT = float(sys.argv[1]), 0.02, int(sys.argv[2])
slept = 0.0

class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return COUNT

    def __getitem__(self, place):
        global slept
        began = time.perf_counter()
        time.sleep(STEP * SHARE) if SHARE else None
        slept += time.perf_counter() - began
        return torch.zeros(4)

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
began = time.perf_counter()
for x in torch.utils.data.DataLoader(Slow()):
    model(x).sum().backward()
    time.sleep(STEP * (1 - SHARE))
    optimizer.step()
print(slept / (time.perf_counter() - began))
"""


def run(quick: bool) -> list[Row]:
    return [cost(quick), *(wait(share, quick) for share in SHARES)]


def cost(quick: bool) -> Row:
    added, _ = told(STEPS, 60 if quick else 400)
    return row("a step, counted", max(0.0, float(added)) * 1e6, ALLOWED, "us")


def wait(share: int, quick: bool) -> Row:
    """The worst of several runs."""
    off = []
    for _ in range(1 if quick else 3):
        truth, line = told(WAITS, share / 100, 150 if quick else 500)
        watched = line["waiting"] / (line["time"] - line["began"])
        off.append(abs(watched - float(truth)) * 100)
    return row(f"waiting {share} % of the time", max(off), POINTS, "points")


def row(work: str, ours: float, allowed: float, unit: str) -> Row:
    return Row(
        work=work,
        peer="what is allowed",
        ours=ours,
        theirs=allowed,
        ratio=allowed / max(ours, allowed / 1000),
        at_least=1.0,
        unit=unit,
    )


def told(program: str, *words: object, watch: str = "1") -> tuple[str, dict[str, float]]:
    """What a program printed, and the last line that was written about it."""
    with tempfile.TemporaryDirectory() as folder:
        metrics = Path(folder, "metrics.jsonl")
        command = [sys.executable, "-c", program, *map(str, words)]
        given = environment(metrics, watch)
        said = subprocess.run(command, env=given, check=True, capture_output=True, text=True)
        lines = metrics.read_text().splitlines() if metrics.exists() else ["{}"]
        return said.stdout.strip(), json.loads(lines[-1])


def environment(metrics: Path, watch: str) -> dict[str, str]:
    package = Path(rabaska.__file__).parent
    first = package / "training" / "watching" / "first"
    return {
        **os.environ, "PYTHONPATH": f"{first}{os.pathsep}{package.parent}",
        "RABASKA_WATCH": watch, "RABASKA_METRICS": str(metrics), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
