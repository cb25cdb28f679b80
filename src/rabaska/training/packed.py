"""A dataset as a sequence of (content, class), read in place from a pack or from a plain folder."""

import os
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from rabaska.training.sources import FolderSource, PackSource, is_pack

Transform = Callable[[bytes], Any]
Source = Union[PackSource, FolderSource]


class PackedDataset:
    """Every file of a dataset, in the order of their names, with the class its folder gives it.

    `path` is what `as = "shards"` or `as = "files"` put on the node: RABASKA_DATA by default.
    `dataset[i]` is `(content, class index)`, the content as bytes or as `transform` makes it; the
    class index is -1 for a file that lies in no folder. It can be handed to a PyTorch DataLoader as
    it is: workers share the index, whether they are forked or spawned.
    """

    def __init__(
        self, path: Union[str, "os.PathLike[str]", None] = None,
        transform: Optional[Transform] = None,
    ) -> None:  # fmt: skip
        self.path = _data_folder() if path is None else os.fspath(path)
        self.transform = transform
        self._open()

    def _open(self) -> None:
        self._source: Source = (
            PackSource(self.path) if is_pack(self.path) else FolderSource(self.path)
        )
        self.classes = [os.fsdecode(name) for name in self._source.classes]
        self.class_to_idx = {name: place for place, name in enumerate(self.classes)}
        self.names = _Names(self._source)

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, position: int) -> Tuple[Any, int]:
        content, label = self._source.sample(_within(position, len(self)))
        return (self.transform(content) if self.transform else content), label

    def __getitems__(self, positions: Sequence[int]) -> List[Tuple[Any, int]]:
        """A whole batch at once, as a DataLoader asks for it."""
        length = len(self)
        samples = self._source.samples([_within(position, length) for position in positions])
        if self.transform is None:
            return samples
        return [(self.transform(content), label) for content, label in samples]

    def __iter__(self) -> Iterator[Tuple[Any, int]]:
        return (self[position] for position in range(len(self)))

    def __repr__(self) -> str:
        return "PackedDataset({!r}): {} samples, {} classes".format(
            self.path, len(self), len(self.classes)
        )

    # A spawned worker opens the files anew instead of receiving the whole index.
    def __getstate__(self) -> Dict[str, Any]:
        return {"path": os.path.abspath(self.path), "transform": self.transform}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


class _Names(Sequence[str]):
    """The samples' names, relative to the dataset, read when they are asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[place] for place in range(*position.indices(len(self)))]
        return os.fsdecode(self._source.name(_within(position, len(self))))


def _within(position: int, length: int) -> int:
    if not -length <= position < length:
        raise IndexError("sample {} of {}".format(position, length))
    return int(position) % length


def _data_folder() -> str:
    path = os.environ.get("RABASKA_DATA")
    if not path:
        raise ValueError(
            "no dataset is named: pass a path, or run inside a rabaska job, which sets RABASKA_DATA"
        )
    return path
