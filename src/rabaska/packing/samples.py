"""Samples of several files (`0001.jpg`, `0001.cls`), as WebDataset reads them: neighbours in a tar.

In the order of their names, files of one stem are neighbours anyway, and shards never part them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from rabaska.errors import DatasetError
from rabaska.packing.cutting import stem

_MOST_KINDS = 1000  # that are told apart


@dataclass(frozen=True)
class Samples:
    """How many there are, what most of them consist of, and those that do not."""

    count: int
    endings: tuple[str, ...]  # such as ("cls", "jpg")
    odd: int
    first_odd: str  # the stem of one of them


def samples_among(names: Iterable[bytes]) -> Samples:
    """The samples that these names, in their order, make up; files without ending are none."""
    kinds: Counter[tuple[bytes, ...]] = Counter()
    firsts: dict[tuple[bytes, ...], bytes] = {}
    for key, endings in _grouped(names):
        if endings in kinds or len(kinds) < _MOST_KINDS:
            kinds[endings] += 1
            firsts.setdefault(endings, key)
        else:
            kinds[()] += 1
    if not kinds:
        raise DatasetError(
            "there are no samples in the dataset",
            why="no file has an ending, such as `.jpg`",
            hint="leave out `samples`",
        )
    usual = kinds.most_common(1)[0][0]
    odd = [firsts.get(kind, b"") for kind in kinds if kind != usual]
    return Samples(
        kinds.total(), tuple(map(_text, usual)), kinds.total() - kinds[usual],
        _text(odd[0]) if odd else "",
    )  # fmt: skip


def _grouped(names: Iterable[bytes]) -> Iterator[tuple[bytes, tuple[bytes, ...]]]:
    """Stems, each with the endings of its files; a folder may have come between them."""
    around: list[bytes] = []  # stems whose name the folder we are in begins with
    parted: set[bytes] = set()
    for key, group in groupby(filter(_has_ending, names), stem):
        if key in parted:
            raise DatasetError(
                f"the files of sample {_text(key)} do not follow one another",
                why=f"in the order of names, a folder called {_text(key)}.… lies between them",
                hint="rename the folder",
            )
        while around and not key.startswith(around[-1] + b"."):
            around.pop()
        parted.update(around[-1:])
        around.append(key)
        yield key, tuple(name[len(key) + 1 :] for name in group)


def _has_ending(name: bytes) -> bool:
    return b"." in name.rpartition(b"/")[2]


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
