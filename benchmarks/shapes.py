"""Datasets as people have them: how many files, how large, in what folders, under what names."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

Size = Callable[[random.Random], int]


class Shape(NamedTuple):
    work: str  # what packing it is called
    at_least: float
    folders: Callable[[int], Iterator[str]]  # below the dataset, for a part of the full size
    files: int  # in each folder
    size: Size
    name: str = "img_{:06d}.jpg"
    datasets: int = 1


def two_kb(_: random.Random) -> int:
    return 2048


def picture(chance: random.Random) -> int:
    return chance.randrange(900, 9000)


def mixed(chance: random.Random) -> int:
    return int(100 * 10 ** (5 * chance.random()))


def megabyte(_: random.Random) -> int:
    return 10**6


def classes(count: int, pattern: str = "class_{:04d}") -> Callable[[int], Iterator[str]]:
    return lambda part: (pattern.format(n) for n in range(max(2, count // part)))


def three_levels(part: int) -> Iterator[str]:
    return (
        f"scene_{a:02d}/camera_{b}/day_{c}"
        for a in range(20 // part)
        for b in range(10)
        for c in range(10)
    )


_LONG = "photograph-{:06d}-" + "of-a-place-with-a-long-name-" * 4 + ".jpg"

SHAPES = {
    "flat": Shape("pack 100,000 x 2 KB in 100 folders", 1.5, classes(100), 1000, two_kb),
    "two levels": Shape(
        "pack 75,000 on two levels",
        1.2,
        classes(150, "n{:08d}/images"),
        500,
        picture,
    ),
    "three levels": Shape("pack 60,000 on three levels", 1.2, three_levels, 30, picture),
    "small folders": Shape("pack 60,000, 20 in each folder", 1.2, classes(3000), 20, picture),
    "one folder": Shape("pack 50,000 in one folder", 1.2, lambda _: iter(["all"]), 50_000, picture),
    "mixed": Shape("pack 1,200 of 0.1 KB to 10 MB", 1.2, classes(10), 120, mixed),
    "long names": Shape("pack 40,000 with long names", 1.2, classes(40), 1000, picture, _LONG),
    "ten datasets": Shape("pack 10 datasets of 5,000", 1.2, classes(10), 500, two_kb, datasets=10),
    "large files": Shape("pack 2,000 x 1 MB", 1.3, classes(10), 200, megabyte),
    "few files": Shape("pack 1,000 x 2 KB", 1.0, classes(10), 100, two_kb),
}


def make_project(folder: Path, shape: Shape, part: int = 1) -> list[str]:
    """A project with these datasets, a part of the full size; the names of their folders."""
    chance = random.Random(1)
    content = memoryview(chance.randbytes(24 * 2**20))
    names = ["data"] if shape.datasets == 1 else [f"data{n}" for n in range(shape.datasets)]
    files = shape.files // part if shape.files >= 10_000 else shape.files
    for dataset in names:
        for below in shape.folders(part):
            place = folder / dataset / below
            place.mkdir(parents=True)
            for number in range(files):
                size = shape.size(chance)
                begin = chance.randrange(len(content) - size)
                path = os.path.join(place, shape.name.format(number))
                with open(path, "wb", buffering=0) as stream:
                    stream.write(content[begin : begin + size])
    tables = "".join(f'[data.{name}]\npath = "{name}"\n' for name in names)
    (folder / "rabaska.toml").write_text(f'command = "python train.py"\n{tables}')
    (folder / "train.py").write_text("print('trained')\n")
    return names
