"""Where shards part, decided by names and sizes alone; samples of several files stay together."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import NamedTuple

from rabaska.errors import DatasetError
from rabaska.packing.compiled import below

_SMALLEST, _LARGEST = 16 * 2**20, 2**30
_SHARDS_WANTED = 64
_SAMPLED = 1024
_FULL_HASH = 2**32
_LONGEST_SAMPLE = 100  # files of one stem that are kept together


class ShardRange(NamedTuple):
    """The files from `begin` to `end`; they become one shard, or several if sizes surprise."""

    number: int
    begin: int
    end: int
    last: bool


class ShardLoad(NamedTuple):
    """How many bytes lie before each file: exact at the files that were asked for their size."""

    places: list[int]
    weights: list[int]
    others: list[int]  # what each file after such a one is taken to weigh
    before: list[int]

    def bytes_before(self, place: int) -> int:
        knot = max(bisect_right(self.places, place) - 1, 0)
        after = place - self.places[knot]
        own = self.weights[knot] - self.others[knot] if after > 0 else 0
        return self.before[knot] + own + after * self.others[knot]

    def place_after(self, size: int) -> int:
        knot = max(bisect_right(self.before, size) - 1, 0)
        left = size - self.before[knot]
        if 0 <= left < self.weights[knot]:
            return self.places[knot]
        own = self.weights[knot] - self.others[knot] if left > 0 else 0
        return int(self.places[knot] + (left - own) // self.others[knot])


def target_size(length: int) -> int:
    """How large shards should be for so many bytes: a power of two, or growth would move all."""
    # A small dataset becomes a few shards, so that several processors can pack it.
    smallest = max(_SMALLEST // 4, min(_SMALLEST, length // 4))
    size = max(smallest, min(_LARGEST, length // _SHARDS_WANTED))
    return 1 << (size.bit_length() - 1)


def sampled(hashes: Sequence[int]) -> list[int]:
    """The files whose sizes stand for all: every one of few, about a thousand of many."""
    if len(hashes) <= 2 * _SAMPLED:
        return list(range(len(hashes)))
    limit = _FULL_HASH >> ((len(hashes) // _SAMPLED).bit_length() - 1)
    if below is not None and isinstance(hashes, memoryview):
        return below(hashes, limit, len(hashes)) or [0]
    return [place for place, hash_ in enumerate(hashes) if hash_ < limit] or [0]


def load_of(places: list[int], weights: list[int]) -> ShardLoad:
    """The load when the file at each place weighs so much, and those after it the same.

    A large one stands for itself alone: it would weigh many times as much with each file that is
    added after it, and move every border.
    """
    usual = next((weight for weight in weights if weight < _SMALLEST), _SMALLEST)
    others = []
    for weight in weights:
        usual = weight if weight < _SMALLEST else usual
        others.append(usual)
    steps = (
        weight + (after - place - 1) * other
        for place, after, weight, other in zip(places, places[1:], weights, others, strict=False)
    )
    return ShardLoad(
        places, weights, others, list(accumulate(steps, initial=places[0] * others[0]))
    )


def cuts(
    hashes: Sequence[int], load: ShardLoad, size: int, *, together: Callable[[int], bool]
) -> list[ShardRange]:
    """Shards of about `size` bytes; `together(place)`: that file belongs to the one before it."""
    files = len(hashes)
    total = load.bytes_before(files)
    begins = [0]
    while True:
        begin = begins[-1]
        start = load.bytes_before(begin)
        if total - start <= size * 5 // 4:
            break
        low = max(load.place_after(start + size * 3 // 4), begin + 1)
        high = max(min(load.place_after(start + size * 5 // 4), files - 1), low)
        if low >= files:
            break
        window = list(hashes[low : high + 1])
        place = low + window.index(max(window))
        begins.append(_first_of_sample(place, begin, together))
    ends = [*begins[1:], files]
    return [
        ShardRange(number, begin, end, end == files)
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True))
    ]


class Filling:
    """A shard that is filled with files, until the next one had better begin another.

    A file of the size of a shard is alone in its own, which stays whatever is added next to it.
    """

    def __init__(self, size: int) -> None:
        self.most = 2 * size
        self._size = size
        self._filled = 0
        self._large = False

    @property
    def room(self) -> int:
        """How many bytes of files that are no large ones can be added."""
        return 0 if self._large else self.most - self._filled

    def is_full(self, length: int) -> bool:
        """Whether a file of so many bytes should begin the next shard."""
        if not self._filled:
            return False
        return self._large or length >= self._size or self._filled + length > self.most

    def add(self, length: int, files: int = 1) -> None:
        self._filled += length
        self._large = self._large or (files == 1 and length >= self._size)


def is_one_shard(lengths: Sequence[int], size: int, end: int) -> bool:
    """Whether files that take so many bytes of tar, and what follows them, fit into one."""
    return sum(lengths) + end <= Filling(size).most and max(lengths) < size


def parts_of(
    names: Sequence[bytes], lengths: Sequence[int], size: int, end: int
) -> list[tuple[int, int]]:
    """From where to where the files of a cut become one shard, when they take so many bytes of tar.

    `end` is how many bytes of links and folders follow; a last pair without files is for them.
    """
    if is_one_shard(lengths, size, end):
        return [(0, len(names))]
    filling = Filling(size)
    begins = [0]
    for place, length in enumerate(lengths):
        if filling.is_full(length) and stem(names[place]) != stem(names[place - 1]):
            begins.append(place)
            filling = Filling(size)
        filling.add(length)
    if end and filling.is_full(end):
        begins.append(len(names))
    return list(zip(begins, [*begins[1:], len(names)], strict=True))


def _first_of_sample(place: int, begin: int, together: Callable[[int], bool]) -> int:
    """Files of one sample (`0001.jpg`, `0001.cls`) stay in one shard, as WebDataset needs it."""
    for first in range(place, max(begin, place - _LONGEST_SAMPLE), -1):
        if not together(first):
            return first
    return place


def stem(name: bytes) -> bytes:
    """What the files of one sample have in common: everything to the first dot of the last part."""
    folder, slash, base = name.rpartition(b"/")
    return folder + slash + base.partition(b".")[0]


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
            hint="remove `samples`",
        )
    usual = kinds.most_common(1)[0][0]
    odd = [firsts.get(kind, b"") for kind in kinds if kind != usual]
    return Samples(
        kinds.total(),
        tuple(map(_text, usual)),
        kinds.total() - kinds[usual],
        _text(odd[0]) if odd else "",
    )


def _grouped(names: Iterable[bytes]) -> Iterator[tuple[bytes, tuple[bytes, ...]]]:
    """Stems, each with the endings of its files; a folder may have come between them."""
    around: list[bytes] = []  # stems whose name the folder we are in begins with
    parted: set[bytes] = set()
    for key, group in groupby(filter(_has_ending, names), stem):
        if key in parted:
            raise DatasetError(
                f"the files of sample {_text(key)} do not follow one another",
                why=f"sorted by name, a folder called {_text(key)}.… comes between them",
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
