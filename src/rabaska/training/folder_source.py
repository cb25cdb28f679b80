"""Samples from a folder of single files, in the order in which a pack of it has them."""

import os
from typing import List, Optional, Sequence, Tuple

from rabaska.node.data.pack_format import NO_CLASS

Sample = Tuple[bytes, int]
Columns = Tuple[List[bytes], List[int]]  # what samples hold, and their classes


class FolderSource:
    """The same samples, in the same order, from the folder that was packed."""

    def __init__(self, path: str) -> None:
        self._path = os.fsencode(path)
        self._names: List[bytes] = []
        with os.scandir(self._path) as entries:
            self.classes = sorted(
                entry.name for entry in entries if entry.is_dir(follow_symlinks=False)
            )
        for folder, _, names in os.walk(self._path, onerror=_raise):
            inside = os.path.relpath(folder, self._path)
            for name in names:
                if not os.path.islink(os.path.join(folder, name)):
                    self._names.append(name if inside == b"." else os.path.join(inside, name))
        self._names.sort()
        self._labels = {name: place for place, name in enumerate(self.classes)}

    def __len__(self) -> int:
        return len(self._names)

    def name(self, position: int) -> bytes:
        return self._names[position]

    def warm(self) -> None:
        """Nothing: single files are read ahead by whoever opens them."""

    def arrived(self) -> List[bool]:
        return [True]

    def shards_of(self, positions: List[int]) -> List[int]:
        return [0] * len(positions)

    def sample(self, position: int) -> Sample:
        name = self._names[position]
        with open(os.path.join(self._path, name), "rb", buffering=0) as stream:
            content = stream.read()
        first, inside, _ = name.partition(b"/")
        return content, self._labels[first] if inside else NO_CLASS

    def at_once(self, positions: Sequence[int]) -> Optional[Columns]:
        return None

    def columns(self, positions: List[int]) -> Columns:
        samples = list(map(self.sample, positions))
        return [content for content, _ in samples], [label for _, label in samples]


def _raise(problem: OSError) -> None:
    raise problem
