"""`rabaska pack` as it is typed, beside `tar cf`, for datasets of many shapes; wall clock.

Both read from a tmpfs and write into it. Each turn of ours begins without a pack, and with the note
on rabaska.toml that any earlier command left; `first` is the first command of all. The quick form
takes a third of the files, at which packing takes several times as long as starting Python.
`python benchmarks/pack.py flat "long names"` measures these shapes alone.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from measuring import Cost, medians
from rows import Row
from shapes import SHAPES, Shape, make_project

NAME = "pack"
QUICK = True
QUICK_SHAPES = ("flat", "small folders", "long names", "large files", "few files")
PART = 3  # of the files, in the quick form
ALLOWED = 0.15  # seconds more than tar, for a thousand files
AGAIN = 8.0
WAIT = 2.2  # seconds: files changed less than two before are not remembered
PROGRAM = Path(sys.executable).with_name("rabaska")


def run(quick: bool, shapes: Sequence[str] = ()) -> list[Row]:
    chosen = shapes or (QUICK_SHAPES if quick else tuple(SHAPES))
    repeats, part = (5, PART) if quick else (9, 1)
    return [row for name in chosen for row in _rows(name, SHAPES[name], repeats, part)]


def _rows(name: str, shape: Shape, repeats: int, part: int) -> Iterator[Row]:
    with _memory() as folder:
        project = folder / "project"
        project.mkdir()
        names = make_project(project, shape, part)
        time.sleep(WAIT)
        bench = _Bench(project, folder / "made", names)
        work = shape.work if part == 1 else f"{shape.work}, 1/{part} of it"
        cost = medians({"ours": bench.packed, "theirs": bench.tarred}, repeats)
        ours, theirs = cost["ours"], cost["theirs"]
        if name == "few files":
            theirs = Cost([spent + ALLOWED for spent in theirs.samples])
            yield Row(work, "tar cf and 0.15 s", ours, theirs, theirs / ours, shape.at_least)
            return
        yield Row(work, "tar cf", ours, theirs, theirs / ours, shape.at_least)
        if name == "flat":
            yield from bench.more(work, repeats, whole=part == 1)


class _Bench:
    def __init__(self, project: Path, made: Path, names: Sequence[str]) -> None:
        self._project, self._made, self._names = project, made, names
        self._home = made.with_name("home")

    def more(self, work: str, repeats: int, *, whole: bool) -> Iterator[Row]:
        first = medians({"ours": self.first, "theirs": self.tarred}, repeats)
        ratio = first["theirs"] / first["ours"]
        yield Row(f"{work}, first", "tar cf", first["ours"], first["theirs"], ratio)
        if not whole:
            return  # starting Python takes longer than looking at so few files
        self.packed()
        again = medians({"ours": self._ours, "theirs": self.tarred}, repeats)
        ratio = again["theirs"] / again["ours"]
        yield Row(f"{work}, again", "tar cf", again["ours"], again["theirs"], ratio, AGAIN)

    def packed(self) -> float:
        shutil.rmtree(self._home / "store", ignore_errors=True)
        return self._ours()

    def first(self) -> float:
        shutil.rmtree(self._home, ignore_errors=True)
        return self._ours()

    def _ours(self) -> float:
        environment = dict(os.environ, RABASKA_HOME=str(self._home))
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled once, as pip does it
        return self._wall([PROGRAM, "pack"], environment)

    def tarred(self) -> float:
        shutil.rmtree(self._made, ignore_errors=True)
        self._made.mkdir()
        words = "; ".join(f"tar cf {self._made}/{name}.tar {name}" for name in self._names)
        if len(self._names) == 1:
            return self._wall(["tar", "cf", self._made / "x.tar", *self._names])
        return self._wall(["sh", "-c", words])

    def _wall(
        self, words: Sequence[str | Path], environment: dict[str, str] | None = None
    ) -> float:
        begun = time.perf_counter()
        subprocess.run(
            words,
            cwd=self._project,
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - begun


@contextmanager
def _memory() -> Iterator[Path]:
    """A folder in memory: /dev/shm is there on every Linux, and needs no rights."""
    if shutil.disk_usage("/dev/shm").free < 6 * 2**30:
        raise RuntimeError("there are no 6 GiB free in /dev/shm")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


if __name__ == "__main__":
    for row in run(quick=False, shapes=sys.argv[1:]):
        print(f"{row.work} beside {row.peer}: {row.ratio:.2f} ± {row.spread:.2f}")
