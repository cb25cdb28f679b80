"""Where samples come from: the shards of a pack, or the files of a folder."""

import os
from typing import Dict, List, Tuple

from rabaska.node.packs import FOLDER, INDEX, MANIFEST, NO_CLASS, Index, shard_name

Sample = Tuple[bytes, int]


def is_pack(path: str) -> bool:
    return all(os.path.isfile(os.path.join(path, name)) for name in (INDEX, MANIFEST))


class PackSource:
    """Samples found by the index and read from the shards, without a seek that workers share."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._index = Index(os.path.join(path, INDEX))
        self._shards: Dict[int, int] = {}
        self.classes = [
            entry.name for entry in self._index.folders()
            if entry.kind == FOLDER and b"/" not in entry.name
        ]  # fmt: skip

    def __len__(self) -> int:
        return self._index.layout.files

    def name(self, position: int) -> bytes:
        return self._index.entry(position).name

    def sample(self, position: int) -> Sample:
        record = self._index.record(position)
        return self._read(record[6], record[1], record[0]), record[10]

    def samples(self, positions: List[int]) -> List[Sample]:
        records = [self._index.record(position) for position in positions]
        samples = [(b"", NO_CLASS)] * len(records)
        # In the order in which they lie on disk, answered in the order asked.
        for place in sorted(range(len(records)), key=positions.__getitem__):
            record = records[place]
            samples[place] = self._read(record[6], record[1], record[0]), record[10]
        return samples

    def _read(self, shard: int, size: int, offset: int) -> bytes:
        descriptor = self._shards.get(shard)
        if descriptor is None:
            path = os.path.join(self._path, shard_name(shard))
            descriptor = self._shards[shard] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        content = os.pread(descriptor, size, offset)
        while len(content) < size:
            more = os.pread(descriptor, size - len(content), offset + len(content))
            if not more:
                raise OSError("{} was cut short".format(shard_name(shard)))
            content += more
        return content

    def __del__(self) -> None:
        for descriptor in getattr(self, "_shards", {}).values():
            os.close(descriptor)


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

    def sample(self, position: int) -> Sample:
        name = self._names[position]
        with open(os.path.join(self._path, name), "rb", buffering=0) as stream:
            content = stream.read()
        first, inside, _ = name.partition(b"/")
        return content, self._labels[first] if inside else NO_CLASS

    def samples(self, positions: List[int]) -> List[Sample]:
        return [self.sample(position) for position in positions]


def _raise(problem: OSError) -> None:
    raise problem
