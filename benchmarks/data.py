"""The data plane beside what a user would run instead; wall clock, on this machine, as root.

`python benchmarks/data.py --only staging reading` measures these parts alone.
Peers that are not there are installed into a virtual environment of their own, `.venv-bench`; a
peer that cannot be had is an error, never a missing line.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from measuring import Work, medians
from rows import Row
from slow_disk.mount import slow_disk, unavailable

from rabaska.node.native import compiled

NAME = "data"
QUICK = False  # at a smaller size, starting programs takes most of the time
HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / ".venv-bench"
# torch first and the rest without dependencies: a plain install of litdata brings gigabytes.
INSTALL = (
    ["torch==2.13.0", "numpy", "pillow"],
    ["--no-deps", "webdataset", "litdata"],
    ["braceexpand", "pyyaml", "fsspec", "filelock", "requests", "tifffile", "lightning-utilities",
     "boto3", "obstore"],
)  # fmt: skip
PACK = "import sys; from pathlib import Path; from rabaska.packing.make_pack import PackOptions, pack; pack(Path(sys.argv[1]), Path(sys.argv[2]), PackOptions('data'))"  # noqa: E501
STAGE = "import sys; from rabaska.node.data.stage import stage; stage(*sys.argv[1:])"
# Before either of them: as if the library could not be loaded.
PLAIN = "import os; os.environ['RABASKA_NATIVE'] = '0'; "
REST = 1  # seconds in which the system frees what was removed, which it does on both processors
PARTS = (
    "packing", "packing_slowly", "staging", "staging_slowly",
    "reading", "comparing", "loading", "reading_cold", "decoding", "resuming", "opening",
)  # fmt: skip


def main() -> int:
    words = argparse.ArgumentParser(description="Measure packing, staging and reading.")
    words.add_argument("--quick", action="store_true", help="fewer repeats and smaller data")
    words.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    asked = words.parse_args()
    return int(any(row.falls_short for row in run(asked.quick, asked.only)))


def run(quick: bool, parts: Sequence[str] = PARTS) -> list[Row]:
    if os.geteuid() != 0:
        raise RuntimeError("this benchmark empties caches and mounts disks, so it needs root")
    why = unavailable()
    if why:
        raise RuntimeError(why)
    install_peers()
    if compiled is None:
        raise RuntimeError("the library was not compiled; `pip install .` does it")
    repeats, scale = (1, 20) if quick else (7, 1)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as disk, memory_disk() as memory:
        bench = Bench(Path(disk), memory, repeats, scale)
        return [told(row) for part in parts for row in getattr(bench, part)()]


def told(row: Row) -> Row:
    """The row, after saying it: the whole takes long, and may be stopped."""
    amounts = f"{row.ours:.3g} and {row.theirs:.3g} {row.unit}"
    print(f"  {row.work} beside {row.peer}: {row.ratio:.2f} ({amounts})", file=sys.stderr)
    return row


def install_peers() -> None:
    python = PEERS / "bin" / "python"
    wanted = "import torch, numpy, PIL, webdataset, litdata"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
    if subprocess.run([python, "-c", wanted], check=False, capture_output=True).returncode:
        for words in INSTALL:
            subprocess.run([python, "-m", "pip", "install", "--quiet", *words], check=True)
        subprocess.run([python, "-c", wanted], check=True)
    for program in ("tar", "cp"):
        if shutil.which(program) is None:
            raise RuntimeError(f"{program} is missing")


@contextmanager
def memory_disk() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def fresh_ext4(folder: Path, size: str = "4G", bytes_per_file: int = 16384) -> Iterator[Path]:
    """An ext4 that nobody wrote to: creating and removing many files slows the next ones down."""
    image, mount = folder / "image", folder / "ext4"
    mount.mkdir()
    subprocess.run(["truncate", "-s", size, image], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-i", str(bytes_per_file), image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)
        mount.rmdir()
        image.unlink()


def empty_caches() -> None:
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


def wall(*commands: list[str | Path]) -> float:
    begun = time.perf_counter()
    for command in commands:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=as_installed())
    return time.perf_counter() - begun


def as_installed() -> dict[str, str]:
    """Our modules are compiled once, as pip does it, though this environment may forbid that."""
    environment = dict(os.environ, PYTHONPYCACHEPREFIX=str(PEERS / "compiled"))
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def make_files(folder: Path, count: int, folders: int, size: int) -> Path:
    """Files of about `size` bytes in classes, of content that cannot be compressed."""
    chance = random.Random(1)
    content = chance.randbytes(2 * size)
    for number in range(count):
        path = folder / f"class_{number % folders:04d}" / f"{number:07d}.jpg"
        if number < folders:
            path.parent.mkdir(parents=True)
        path.write_bytes(content[: size // 2 + chance.randrange(size)])
    os.sync()  # or the disk would still be busy with them while others are measured
    return folder


def make_pictures(folder: Path, count: int) -> Path:
    """Small pictures as smooth as photographs; noise would take twice as long to decode."""
    code = (
        "import sys, os, io, random; from PIL import Image\n"
        "for n in range(int(sys.argv[2])):\n"
        "    d = os.path.join(sys.argv[1], 'class_%02d' % (n % 20))\n"
        "    os.makedirs(d, exist_ok=True)\n"
        "    Image.frombytes('RGB', (12, 12), random.Random(n).randbytes(12 * 12 * 3))"
        ".resize((64, 64)).save(os.path.join(d, '%06d.jpg' % n), quality=75)\n"
    )
    subprocess.run([PEERS / "bin" / "python", "-c", code, folder, str(count)], check=True)
    return folder


class Bench:
    def __init__(self, disk: Path, memory: Path, repeats: int, scale: int) -> None:
        self._disk, self._memory = disk, memory
        self._repeats, self._scale = repeats, scale
        self._small = make_files(disk / "reading" / "files", 100_000 // scale, 200, 2000)
        self._packed = self._pack(self._small, disk / "reading" / "packs")

    def _pack(self, source: Path, store: Path) -> Path:
        wall([sys.executable, "-c", PACK, source, store])
        return next(store.glob("data-*"))

    def _fresh(self, work: Work, *, cold: bool = False) -> Work:
        """The work, with nothing left of what was written before, nor to be written or freed."""

        def once() -> float:
            for left in self._memory.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            if cold:
                empty_caches()
            os.sync()
            time.sleep(REST)
            return work()

        return once

    def _beside(
        self, work: str, peer: str, ours: Work, theirs: Work, at_least: float | None, *,
        cold: bool = False,
    ) -> Row:  # fmt: skip
        contenders = {
            "ours": self._fresh(ours, cold=cold),
            "theirs": self._fresh(theirs, cold=cold),
        }
        cost = medians(contenders, self._repeats)
        ratio = cost["theirs"] / cost["ours"]
        return Row(work, peer, cost["ours"], cost["theirs"], ratio, at_least)

    def _packing(
        self, source: Path, work: str, at_least: float | None, *, cold: bool = False,
        program: str = PACK,
    ) -> Row:  # fmt: skip
        def ours() -> float:
            return wall([sys.executable, "-c", program, source, self._memory / "packs"])

        def theirs() -> float:
            return wall(["tar", "cf", self._memory / "x.tar", "-C", source.parent, source.name])

        return self._beside(work, "tar cf", ours, theirs, at_least, cold=cold)

    def packing(self) -> Iterator[Row]:
        large = make_files(self._disk / "large", 2000 // self._scale, 20, 1_000_000)
        count = 100_000 // self._scale
        yield self._packing(self._small, f"pack {count} files of 2 KB", 1.4)
        work = f"pack {count} files of 2 KB, without C"
        yield self._packing(self._small, work, None, program=PLAIN + PACK)
        yield self._packing(self._small, f"pack {count} files of 2 KB, cold", 2.5, cold=True)
        yield self._packing(large, f"pack {2000 // self._scale} files of 1 MB", 1.0)
        shutil.rmtree(large)

    def packing_slowly(self) -> Iterator[Row]:
        count = max(1000, 4000 // self._scale)  # tar takes five seconds for a thousand
        source = make_files(self._disk / "slow", count, 100, 2000)
        with slow_disk(source, self._disk / "mount", latency_us=1000) as mount:
            yield self._packing(mount, f"pack {count} files, 1 ms per call", 12)
        shutil.rmtree(source)

    def _staging(
        self, mode: str, place: Path, work: str, at_least: float | None, program: str = STAGE
    ) -> Row:
        tar = self._disk / "x.tar"
        if not tar.exists():
            wall(["tar", "cf", tar, "-C", self._small, "."])

        def ours() -> float:
            target = place / "ours"
            spent = wall([sys.executable, "-c", program, self._packed, target, mode])
            shutil.rmtree(target)
            return spent

        def theirs() -> float:
            target = place / "theirs"
            target.mkdir()
            spent = wall(
                ["cp", tar, target / "x.tar"], ["tar", "xf", target / "x.tar", "-C", target]
            )
            shutil.rmtree(target)
            return spent

        return self._beside(work, "cp + tar xf", ours, theirs, at_least)

    def staging(self) -> Iterator[Row]:
        count = 100_000 // self._scale
        work = f"stage {count} files, memory"
        yield self._staging("files", self._memory, work, 2.4)
        yield self._staging("files", self._memory, f"{work}, without C", None, PLAIN + STAGE)
        with fresh_ext4(self._disk) as ext4:
            yield self._staging("files", ext4, f"stage {count} files, ext4", 2.2)
        yield self._staging("shards", self._memory, "stage shards", 10)

    def staging_slowly(self) -> Iterator[Row]:
        count = 1000 // self._scale
        source = make_files(self._disk / "gigabyte", count, 10, 1_000_000)
        tars = self._disk / "tars"
        packed = self._pack(source, tars)
        wall(["tar", "cf", tars / "x.tar", "-C", source, "."])
        shutil.rmtree(source)
        with slow_disk(tars, self._disk / "mount", stream=70) as mount:
            pack = mount / packed.name

            def ours() -> float:
                return wall([sys.executable, "-c", STAGE, pack, self._memory / "ours", "shards"])

            def copied() -> float:
                return wall(["cp", mount / "x.tar", self._memory / "x.tar"])

            def unpacked() -> float:
                return copied() + wall(["tar", "xf", self._memory / "x.tar", "-C", self._memory])

            work = f"stage {count} MB, 70 MB/s per stream"
            # No cache needs to be emptied: it forgets what it read of a file when that is opened.
            yield self._beside(work, "cp", ours, copied, 6)

            def first() -> float:
                (self._memory / "first").mkdir()
                (self._memory / "first" / "packs").symlink_to(mount)
                return self._reader("first", "rabaska", self._memory / "first")

            yield self._beside("job start to first batch", "cp + tar xf", first, unpacked, 20)
        shutil.rmtree(tars)

    def _reader(self, act: str, kind: str, folder: Path) -> float:
        """What the reader printed."""
        command = [PEERS / "bin" / "python", HERE / "readers.py", act, kind, folder]
        environment = dict(as_installed(), PYTHONPATH=str(HERE.parent / "src"))
        ended = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment
        )  # fmt: skip
        return float(json.loads(ended.stdout.strip().splitlines()[-1]))

    def _rates(self, act: str, folder: Path, asked: Mapping[str, float | None], work: str,
               *, cold: bool = False) -> Iterator[Row]:  # fmt: skip
        def seconds(kind: str) -> Work:
            def once() -> float:
                if cold:
                    empty_caches()
                return 1 / self._reader(act, kind, folder)

            return once

        cost = medians({kind: seconds(kind) for kind in ("rabaska", *asked)}, self._repeats)
        for peer, at_least in asked.items():
            ratio = cost[peer] / cost["rabaska"]
            yield Row(work, peer, 1 / cost["rabaska"], 1 / cost[peer], ratio, at_least, "/s")

    def reading(self) -> Iterator[Row]:
        asked = {"webdataset": 12.0, "litdata": 1.6, "files": 4.0}
        yield from self._rates("random", self._with_peers(), asked, "read, random, one process")

    def comparing(self) -> Iterator[Row]:
        """What it costs to compare every sample, which is done once where all fit into memory."""
        folder = self._disk / "reading"
        cost = medians(
            {kind: lambda kind=kind: 1 / self._reader("random", kind, folder)
             for kind in ("compared", "proven")},
            self._repeats,
        )  # fmt: skip
        ratio = cost["proven"] / cost["compared"]
        work, rates = "read, every sample compared", (1 / cost["compared"], 1 / cost["proven"])
        yield Row(work, "samples that were compared", *rates, ratio, None, "/s")

    def loading(self) -> Iterator[Row]:
        asked = {"webdataset": 4.0, "litdata": 1.3, "files": 2.5, "nothing": None}
        yield from self._rates("loader", self._with_peers(), asked, "read, DataLoader, 2 workers")

    def reading_cold(self) -> Iterator[Row]:
        asked, work = {"litdata": 1.0}, "read, random, cold"
        yield from self._rates("random", self._with_peers(), asked, work, cold=True)

    def decoding(self) -> Iterator[Row]:
        pictures = self._disk / "pictures"
        make_pictures(pictures / "files", 20_000 // self._scale)
        self._pack(pictures / "files", pictures / "packs")
        asked = {"webdataset": 1.3, "files": 1.1}
        yield from self._rates("jpeg", pictures, asked, "read and decode JPEG, 2 workers")

    def _with_peers(self) -> Path:
        """Where the files are in the forms of all peers."""
        folder = self._disk / "reading"
        if not (folder / "litdata").exists():
            command = [PEERS / "bin" / "python", HERE / "readers.py", "make", folder]
            subprocess.run(command, check=True, capture_output=True)
        return folder

    def resuming(self) -> Iterator[Row]:
        folder = self._disk / "reading"
        cost = medians(
            {
                "ours": lambda: self._reader("resume", "rabaska", folder),
                "fresh": lambda: self._reader("resume", "fresh", folder),
            },
            self._repeats,
        )
        ratio = cost["fresh"] / cost["ours"]
        yield Row("resume at 90 %", "a fresh loader", cost["ours"], cost["fresh"], ratio, 1.0)

    def opening(self) -> Iterator[Row]:
        count = 1_300_000 // self._scale
        source = make_files(self._disk / "many", count, 1000, 20)
        packed = self._pack(source, self._disk / "many-packs")
        command = [PEERS / "bin" / "python", HERE / "readers.py", "index", packed]
        environment = dict(as_installed(), PYTHONPATH=str(HERE.parent / "src"))
        ended = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        found = json.loads(ended.stdout)
        seconds, megabytes = found["seconds"], found["megabytes"]
        yield Row(f"open an index of {count}", "50 ms", seconds, 0.05, 0.05 / seconds, 1)
        yield Row(f"memory of a reader of {count}", "20 MB", megabytes, 20, 20 / megabytes, 1, "MB")


if __name__ == "__main__":
    sys.exit(main())
