"""One pack for several nodes of a job, from storage that gives 200 MB/s to all of them together.

Four nodes of the lab run a real job each time: once they read the pack together, once each alone.
The law that this shows is then computed for up to 1,000 nodes, and said where it ends. As root.
"""

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rows import Row
from slow_disk.mount import build, unavailable

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.lab import Lab
from tests.lab.site import PARTITIONS, Partition, Site, Storage

NAME = "nodes"
NODES = ("sdumont3170", "sdumont3171", "sdumont4000", "sdumont8000")
SPEED = 200  # MB/s of the storage, for all together
BLOCK = 16 * 2**20
PROFILE = """
title = "the lab"
scheduler = "slurm"
[reach]
host = "lab"
options = ["-F", "{config}"]
[storage]
store = "$SCRATCH/rabaska"
"""
PROJECT = """
name = "many"
command = "python3 show.py {{data}}"
launch = "srun"
[data.blobs]
path = "blobs"
as = "{mode}"
[resources]
walltime = "5m"
nodes = 4
cores = 1
memory = "4GB"
[environment]
kind = "current"
variables = {{ RABASKA_TOGETHER = "{together}" }}
[cluster.lab]
queue = "all"
"""
SHOW = "import os, sys; print('files', len(os.listdir(sys.argv[1])))\n"


def run(quick: bool) -> list[Row]:
    if os.geteuid() != 0:
        raise RuntimeError("this benchmark boots a cluster and mounts a disk, so it needs root")
    if why := unavailable():
        raise RuntimeError(why)
    repeats, size = (1, 256) if quick else (3, 400)
    site = Site(
        partitions=(*PARTITIONS, Partition("all", NODES, "01:00:00", "PreemptMode=OFF")),
        local=Storage(size="1500m"),
    )
    rows = []
    with Lab(site) as lab, tempfile.TemporaryDirectory(dir="/tmp") as folder:
        here = Cluster(Path(folder), lab, size)
        for mode in ("shards", "files"):
            cost: dict[str, list[float]] = {"1": [], "0": []}
            for _ in range(repeats):
                for together in random.sample(sorted(cost), 2):
                    cost[together].append(here.staged(mode, together))
            ours, theirs = (statistics.median(cost[kind]) for kind in ("1", "0"))
            work = f"stage {size} MB as {mode} on 4 nodes, {SPEED} MB/s for all"
            asked = None if quick or mode == "files" else 3.0
            rows.append(Row(work, "each node alone", ours, theirs, theirs / ours, asked))
            print(f"  {work}: {theirs / ours:.2f} ({ours:.2f} and {theirs:.2f} s)", file=sys.stderr)
    return rows + computed()


class Cluster:
    """A laptop with a project, and a lab whose packs lie on slow storage."""

    def __init__(self, folder: Path, lab: Lab, size: int) -> None:
        self._folder, self._lab = folder, lab
        profiles = folder / "home" / "clusters"
        profiles.mkdir(parents=True)
        (profiles / "lab.toml").write_text(PROFILE.format(config=lab.ssh_config))
        self._project = folder / "project"
        (self._project / "blobs").mkdir(parents=True)
        for number in range(size // 4):
            (self._project / "blobs" / f"{number:04d}").write_bytes(os.urandom(4_000_000))
        (self._project / "show.py").write_text(SHOW)
        self._store = f"{lab.shared}/rabaska"
        self.staged("shards", "1")  # sends the pack
        self._slow_down()

    def _slow_down(self) -> None:
        """From now on the nodes, and they alone, see the packs through the slow disk."""
        lab, packs = self._lab, f"{self._store}/packs"
        program = build(self._folder)
        shutil.copy(program, lab.world.path("/usr/local/bin/slow_disk"))
        lab.world.run(["mknod", "-m", "666", "/dev/fuse", "c", "10", "229"], check=False)
        lab.world.run(["mkdir", "-p", "/under"])
        lab.world.run(["mount", "--bind", packs, "/under"])
        options = f"root=/under,target={SPEED},targets=1,stripe=1,uncached=1,allow_other"
        options += ",max_threads=64,max_idle_threads=64,attr_timeout=1,entry_timeout=1"
        words = ["/usr/local/bin/slow_disk", "-f", packs, "-o", options]
        slow = lab.world.start("slow", words)
        while lab.world.run(["mountpoint", "-q", packs], check=False).returncode:
            if not slow.running:
                raise RuntimeError(slow.last_words)
            time.sleep(0.05)
        for node in NODES:
            lab.crash_node(node)
            lab.reboot_node(node)
        lab.wait_for_nodes()

    def staged(self, mode: str, together: str) -> float:
        """Seconds from the start of the job to the moment at which its program starts."""
        text = PROJECT.format(mode=mode, together=together)
        (self._project / "rabaska.toml").write_text(text)
        name = self._rabaska("run", "--on", "lab").split()[-1]
        self._rabaska("wait", name)
        events = self._lab.path(f"{self._store}/runs/{name}/events.jsonl").read_text()
        records = [json.loads(line) for line in events.splitlines()]
        times = {one["event"]: one["time"] for one in records}
        return float(times["started"] - times["claimed"])

    def _rabaska(self, *words: str) -> str:
        program = str(Path(sys.executable).with_name("rabaska"))
        own = {"RABASKA_HOME": str(self._folder / "home"), "XDG_RUNTIME_DIR": str(self._folder)}
        done = subprocess.run(
            [program, *words], cwd=self._project, env={**os.environ, **own}, check=False,
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout


def simulated(nodes: int, size: float, storage: float, line: float) -> float:
    """Seconds until all nodes have a pack of `size` bytes, block by block.

    Storage gives `storage` bytes per second to all together; a node sends and receives `line`.
    Each node takes from the others in turn, beginning with its neighbour, as `pass_blocks` does.
    """
    blocks = max(1, round(size / BLOCK))
    share = [blocks // nodes + (place < blocks % nodes) for place in range(nodes)]
    # All read at once; each gets an equal part of the storage as long as others read too.
    read = [0.0] * nodes
    clock, done = 0.0, 0
    for level in sorted(set(share)):
        reading = sum(one >= level for one in share if level)
        clock += (level - done) * reading * BLOCK / storage
        done = max(done, level)
        for place in range(nodes):
            if share[place] == level:
                read[place] = clock
    sending, ends = [0.0] * nodes, list(read)
    for step in range(1, nodes):
        for place in range(nodes):
            owner = (place + step) % nodes
            if not share[owner]:
                continue
            seconds = share[owner] * BLOCK / line
            # A block follows the one before as it is read, so only the last one is waited for.
            begin = max(ends[place], sending[owner], read[owner] - seconds * (share[owner] - 1))
            ends[place] = sending[owner] = begin + seconds
    return max(ends)


def computed() -> list[Row]:
    """What the law says of larger jobs: a 100 GB pack, 10 GB/s of storage, 10 Gbit/s of network."""
    rows = []
    for nodes in (4, 16, 64, 256, 1000):
        for size in (160e6, 100e9):
            together = simulated(nodes, size, 10e9, 1.1e9)
            alone = max(nodes * size / 10e9, size / 1.1e9)
            work = f"computed: {size / 1e9:g} GB on {nodes} nodes, 10 GB/s for all"
            rows.append(Row(work, "each node alone", together, alone, alone / together))
    return rows


if __name__ == "__main__":
    for row in run(quick="--quick" in sys.argv):
        print(f"{row.work}: {row.ratio:.2f} ({row.ours:.2f} and {row.theirs:.2f} {row.unit})")
