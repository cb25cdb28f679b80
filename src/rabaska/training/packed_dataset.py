"""A dataset as a sequence of (content, class), read from a pack or a folder, and decoded."""

import io
import json
import os
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import lazy_imports
from .folder_source import FolderSource
from .pack_source import PackSource, is_pack


def decoded(name: str, content: bytes) -> Any:
    """The content as an image, an array, text or whatever its suffix stands for; bytes if none."""
    decode = _DECODERS.get(os.path.splitext(name)[1].lower())
    return decode(content) if decode else content


def _image(content: bytes) -> Any:
    from .lazy_picture import opened  # not at the top: it needs Pillow

    return opened(content)


def _array(content: bytes) -> Any:
    import numpy

    return numpy.load(io.BytesIO(content), allow_pickle=False)


def _text(content: bytes) -> str:
    return content.decode("utf-8")


def _number(content: bytes) -> int:
    return int(content)


_IMAGES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif")
_DECODERS: Dict[str, Callable[[bytes], Any]] = {
    ".npy": _array,
    ".json": json.loads,
    ".txt": _text,
    ".cls": _number,
}
_DECODERS.update(dict.fromkeys(_IMAGES, _image))


Transform = Callable[[Any], Any]
Source = Union[PackSource, FolderSource]


class PackedDataset:
    """Every file of a dataset, in the order of their names, with the class its folder gives it.

    `path` is what `as = "shards"` or `as = "files"` put on the node: RABASKA_DATA by default.
    `dataset[i]` is `(content, class index)`, the content as bytes or as `transform` makes it; the
    class index is -1 for a file that lies in no folder. With `decode=True` an image becomes a
    Pillow image, `.npy` an array, `.json` what it says, `.txt` text, before `transform` sees it.
    A transform with a method `batch`, such as RandomResizedCrop, gets all contents of a batch.
    With `ahead=True` shards that fit into memory are read ahead. It can be handed to a PyTorch
    DataLoader as it is: workers share the index, whether they are forked or spawned.
    """

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]", None] = None,
        transform: Optional[Transform] = None,
        *,
        decode: bool = False,
        ahead: bool = True,
    ) -> None:
        self.path = _data_folder() if path is None else os.fspath(path)
        self.transform = transform
        self.decode = decode
        self._open()
        if ahead:
            self._source.warm()

    def _open(self) -> None:
        self._source: Source = (
            PackSource(self.path) if is_pack(self.path) else FolderSource(self.path)
        )
        self.classes = [os.fsdecode(name) for name in self._source.classes]
        self.class_to_idx = {name: place for place, name in enumerate(self.classes)}
        self.names = _Names(self._source)
        if "multiprocessing" in sys.modules:
            _batch()  # before there are workers, or each would import it for itself

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, position: int) -> Tuple[Any, int]:
        place = _within(position, len(self))
        content, label = self._source.sample(place)
        return self._made(place, content), label

    def __getitems__(self, positions: Sequence[int]) -> List[Tuple[Any, int]]:
        """A whole batch at once, as a DataLoader asks for it."""
        if not len(positions):
            return []
        columns = self._source.at_once(positions)
        if columns is None:
            length = len(self)
            if min(positions) < 0 or max(positions) >= length:
                positions = [_within(position, length) for position in positions]
            columns = self._source.columns(list(positions))
        contents: List[Any]
        contents, labels = columns
        at_once = getattr(self.transform, "batch", None)
        if at_once is not None:
            from .random_crops import PictureBatch

            return PictureBatch(at_once(contents), labels)
        if self.transform is not None or self.decode:
            contents = list(map(self._made, positions, contents))
        return (_batch() if lazy_imports.in_worker() else _pairs)(contents, labels)

    def _made(self, position: int, content: Any) -> Any:
        if self.decode:
            content = decoded(self.names[position], content)
        return self.transform(content) if self.transform else content

    def __iter__(self) -> Iterator[Tuple[Any, int]]:
        return (self[position] for position in range(len(self)))

    def shards_of(self, positions: Sequence[int]) -> List[int]:
        """The number of the shard in which each sample lies; shards arrive in their order."""
        return self._source.shards_of(list(positions))

    def __repr__(self) -> str:
        return "PackedDataset({!r}): {} samples, {} classes".format(
            self.path, len(self), len(self.classes)
        )

    # A spawned worker opens the files anew instead of receiving the whole index.
    def __getstate__(self) -> Dict[str, Any]:
        return {
            "path": os.path.abspath(self.path),
            "transform": self.transform,
            "decode": self.decode,
        }

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


def folder(
    path: Union[str, "os.PathLike[str]", None] = None, transform: Optional[Transform] = None
) -> PackedDataset:
    """What `torchvision.datasets.ImageFolder(path, transform)` gives, from a pack or a folder."""
    return PackedDataset(path, transform, decode=True)


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


def _pairs(contents: List[Any], labels: List[int]) -> List[Tuple[Any, int]]:
    return list(zip(contents, labels))


def _batch() -> Callable[[List[Any], List[int]], List[Tuple[Any, int]]]:
    """The kind of batch that a worker sends."""
    # Not at the top: it brings multiprocessing, which programs without workers do not need.
    from .shared_batches import Batch

    return Batch


def _within(position: int, length: int) -> int:
    if not -length <= position < length:
        raise IndexError("sample {} of {}".format(position, length))
    return int(position) % length


def _data_folder() -> str:
    path = os.environ.get("RABASKA_DATA")
    if not path:
        raise ValueError(
            "no dataset given: pass a path, or run inside a rabaska job, which sets RABASKA_DATA"
        )
    return path
