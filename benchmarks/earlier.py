"""Reading and staging, beside another checkout of this repository.

    git worktree add /tmp/earlier a369741
    python benchmarks/earlier.py --beside /tmp/earlier

Each checkout builds its own compiled part, packs the same files, and takes turns with the other.
Told are the medians of ours and theirs, their ratio, and the ratio of the best of each, for wall
clock and for the processor time of the reader with its workers; above 1.05 ours is slower by more
than a twentieth. The first pass begins before the dataset is opened. Other work on the computer
disturbs wall clock much more than processor time.
"""

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACK = "import sys; from pathlib import Path; from rabaska.packing.make_pack import Wish, pack; pack(Path(sys.argv[1]), Path(sys.argv[2]), Wish('data'))"  # noqa: E501
STAGE = "import sys; from rabaska.node.data.stage import stage; stage(*sys.argv[1:])"
PLACES = ("lying", "staged")  # a pack as it lies, which nobody proved; and one that we copied
MODES = ("shards", "files")
WAYS = ("random", "sequential", "single", "loader")
PASSES = ("first pass", "second pass")

Costs = list[tuple[float, float]]  # wall clock and processor time of each pass

# Reads once for each line that it is sent, and answers with what each pass cost.
READ = """
import json, random, resource, sys, time
import torch.utils.data
from rabaska.training import PackedDataset

def as_it_is(samples):
    return samples

def spent():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.perf_counter(), sum(one.ru_utime + one.ru_stime for one in used)

def read(data, way, order):
    if way == "single":
        for place in order:
            data[place]
    elif way == "loader":
        for _ in torch.utils.data.DataLoader(
            data, batch_size=64, sampler=order, num_workers=2, collate_fn=as_it_is
        ):
            pass
    else:
        for place in range(0, len(order), 64):
            data.__getitems__(order[place : place + 64])

for line in sys.stdin:
    path, way = json.loads(line)
    order = list(range(len(PackedDataset(path, ahead=False))))
    if way != "sequential":
        random.Random(7).shuffle(order)
    costs, data = [], None
    for _ in range(2):
        begun = spent()
        data = data or PackedDataset(path)
        read(data, way, order)
        costs.append([now - then for now, then in zip(spent(), begun)])
        time.sleep(0.2)  # what still goes on behind the reader counts for nobody
    print(json.dumps(costs), flush=True)
"""


class Tree:
    """A checkout, its compiled part, and what it packed and staged."""

    def __init__(self, name: str, checkout: Path, files: Path, folder: Path) -> None:
        self.name = name
        self._source = checkout / "src"
        self._compiled = folder / "speed"
        self._readers: dict[bool, subprocess.Popen[str]] = {}
        shutil.copytree(checkout / "speed", folder / "sources")  # building writes into it
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
             "--target", self._compiled, folder / "sources"],
            check=True,
        )  # fmt: skip
        self._run(PACK, files, folder / "packs")
        self._packed = next((folder / "packs").glob("data-*"))
        self._run(STAGE, self._packed, folder / "staged", "shards")
        self._staged = next((folder / "staged").glob("data-*"))

    def _environment(self, *, compiled: bool) -> dict[str, str]:
        path = [str(self._source)] + [str(self._compiled)] * compiled
        return dict(os.environ, PYTHONPATH=os.pathsep.join(path), OMP_NUM_THREADS="1")

    def _run(self, program: str, *words: object, compiled: bool = True) -> None:
        command = [sys.executable, "-c", program, *map(str, words)]
        subprocess.run(command, check=True, env=self._environment(compiled=compiled))

    def read(self, place: str, way: str, *, compiled: bool) -> Costs:
        """What each pass cost."""
        if compiled not in self._readers:
            self._readers[compiled] = subprocess.Popen(
                [sys.executable, "-c", READ], text=True, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, env=self._environment(compiled=compiled),
            )  # fmt: skip
        reader = self._readers[compiled]
        if reader.stdin is None or reader.stdout is None:
            raise RuntimeError("a reader without pipes")
        path = self._packed if place == "lying" else self._staged
        print(json.dumps([str(path), way]), file=reader.stdin, flush=True)
        return [tuple(cost) for cost in json.loads(reader.stdout.readline())]

    def stage(self, mode: str, folder: Path, *, compiled: bool) -> Costs:
        """What one staging cost."""
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        self._run(STAGE, self._packed, folder / self.name, mode, compiled=compiled)
        wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        shutil.rmtree(folder / self.name)
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        return [(wall, user + system)]

    def end(self) -> None:
        for reader in self._readers.values():
            reader.communicate()


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    words.add_argument("--beside", type=Path, required=True, metavar="CHECKOUT")
    words.add_argument("--ours", type=Path, default=HERE.parent, metavar="CHECKOUT")
    words.add_argument("--files", type=int, default=20_000)
    words.add_argument("--repeats", type=int, default=7)
    words.add_argument("--only", nargs="+", choices=(*WAYS, *MODES), default=(*WAYS, *MODES))
    words.add_argument("--places", nargs="+", choices=PLACES, default=PLACES)
    asked = words.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        top = Path(folder)
        files = make_files(top / "files", asked.files)
        trees = [
            Tree("ours", asked.ours.resolve(), files, made(top / "ours")),
            Tree("theirs", asked.beside.resolve(), files, made(top / "theirs")),
        ]
        print(f"{'':40}{'wall clock, ms':>29}{'processor, ms':>31}")
        print(" " * 40 + f"{'ours':>9}{'theirs':>8}{'ratio':>6}{'best':>6}  " * 2)
        for compiled, place, way in product((True, False), asked.places, asked.only):
            if way in WAYS or place == PLACES[-1]:
                tell(trees, way, place, asked.repeats, made(top / "staging"), compiled=compiled)
        for tree in trees:
            tree.end()
    return 0


def tell(
    trees: list[Tree], way: str, place: str, repeats: int, folder: Path, *, compiled: bool
) -> None:
    """Measure a way of reading or staging, the trees in turns, and print a line for each pass."""
    found: dict[str, list[Costs]] = {tree.name: [] for tree in trees}
    chance = random.Random(0)
    for repeat in range(repeats + 1):
        for tree in chance.sample(trees, len(trees)):
            cost = (
                tree.read(place, way, compiled=compiled) if way in WAYS
                else tree.stage(way, folder, compiled=compiled)
            )  # fmt: skip
            found[tree.name] += [cost] if repeat else []  # the first round warms the caches
    for which in range(len(cost)):
        what = f"{way}, {PASSES[which]}, {place}" if way in WAYS else f"stage as {way}"
        runs = [[run[which] for run in found[tree.name]] for tree in trees]
        sides = [compared([[cost[kind] for cost in some] for some in runs]) for kind in (0, 1)]
        print(f"{what + ('' if compiled else ', no C'):40}" + "".join(sides), flush=True)


def compared(costs: list[list[float]]) -> str:
    """The medians of ours and theirs, their ratio, and the ratio of the best."""
    ours, theirs = map(statistics.median, costs)
    best, their_best = map(min, costs)
    return f"{ours * 1e3:9.1f}{theirs * 1e3:8.1f}{ours / theirs:6.2f}{best / their_best:6.2f}  "


def made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def make_files(folder: Path, count: int) -> Path:
    """Files of 0.9 to 9 kB in a hundred classes."""
    chance = random.Random(1)
    content = chance.randbytes(9000)
    for number in range(count):
        path = folder / f"class_{number % 100:03d}" / f"{number:07d}"
        if number < 100:
            path.parent.mkdir(parents=True)
        path.write_bytes(content[: 900 + chance.randrange(8100)])
    return folder


if __name__ == "__main__":
    sys.exit(main())
