"""Random parts of pictures, resized, as a batch in one piece of memory.

What `torchvision.transforms.RandomResizedCrop` and a random flip give, as a tensor of bytes. A
DataLoader's worker decodes each picture to its place in the memory that it shares with the
training, so that nothing is copied on the way.
"""

import math
import random
from typing import Any, List, Sequence, Tuple, Union

from . import jpeg_parts, lazy_imports
from .jpeg_parts import Box

_TRIES = 10  # as torchvision has it


class RandomResizedCrop:
    """A transform of PackedDataset: a random part of each picture, as (3, height, width) bytes.

    `size`, `scale` and `ratio` mean what they mean for torchvision's transform of that name;
    `flip` is how often the part is mirrored. Pass `collate_fn=rabaska.training.collate` to the
    DataLoader, or the batch is copied once more. Draws from Python's `random`, which a DataLoader
    and a session seed in each worker.
    """

    def __init__(
        self,
        size: Union[int, Tuple[int, int]],
        scale: Tuple[float, float] = (0.08, 1.0),
        ratio: Tuple[float, float] = (3 / 4, 4 / 3),
        flip: float = 0.5,
    ) -> None:
        self.height, self.width = (size, size) if isinstance(size, int) else size
        self.scale = scale
        self.ratio = ratio
        self.flip = flip

    def box(self, width: int, height: int) -> Box:
        """A random part of a picture of this size."""
        shapes = (math.log(self.ratio[0]), math.log(self.ratio[1]))
        for _ in range(_TRIES):
            area = width * height * random.uniform(*self.scale)
            shape = math.exp(random.uniform(*shapes))
            wide, high = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if 0 < wide <= width and 0 < high <= height:
                left, top = random.randint(0, width - wide), random.randint(0, height - high)
                return Box(left, top, wide, high)
        return self._central(width, height)

    def _central(self, width: int, height: int) -> Box:
        """The largest part in the middle that has an allowed shape."""
        wide = min(width, max(1, round(height * self.ratio[1])))
        high = min(height, max(1, round(width / self.ratio[0])))
        return Box((width - wide) // 2, (height - high) // 2, wide, high)

    def __call__(self, content: Any) -> Any:
        """One picture: its bytes, or a Pillow image."""
        if isinstance(content, bytes):
            return self.batch([content])[0]
        torch = lazy_imports.torch()
        left, top, wide, high = self.box(*content.size)
        cut = content.crop((left, top, left + wide, top + high))
        made = cut.convert("RGB").resize((self.width, self.height), jpeg_parts.BILINEAR)
        room = torch.empty((3, self.height, self.width), dtype=torch.uint8)
        _put(room, made, mirrored=random.random() < self.flip)
        return room

    def batch(self, contents: Sequence[bytes]) -> Any:
        """All of them, as one tensor (pictures, 3, height, width); shared, in a worker."""
        torch = lazy_imports.torch()
        shape = (len(contents), 3, self.height, self.width)
        if lazy_imports.in_worker():
            storage = torch.UntypedStorage._new_shared(math.prod(shape))
            room = torch.empty(0, dtype=torch.uint8).set_(storage).view(shape)
        else:
            room = torch.empty(shape, dtype=torch.uint8)
        address, long = room.data_ptr(), 3 * self.height * self.width
        for number, content in enumerate(contents):
            size = jpeg_parts.size(content)
            mirrored = random.random() < self.flip
            box = self.box(*size) if size else None
            at = address + number * long
            if box and jpeg_parts.part_into(content, box, self.width, self.height, mirrored, at):
                continue
            _put(room[number], self._by_pillow(content, box), mirrored=mirrored)
        return room

    def _by_pillow(self, content: bytes, box: Any) -> Any:
        import io

        from PIL import Image

        from .lazy_picture import resized

        if box is None:
            with Image.open(io.BytesIO(content)) as picture:
                box = self.box(*picture.size)
        return resized(content, box, (self.width, self.height))

    def __repr__(self) -> str:
        return "RandomResizedCrop(({}, {}), scale={}, ratio={}, flip={})".format(
            self.height, self.width, self.scale, self.ratio, self.flip
        )


def _put(room: Any, picture: Any, *, mirrored: bool) -> None:
    """Copy a Pillow image to three planes of a tensor."""
    torch = lazy_imports.torch()
    pixels = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8)
    planes = pixels.view(picture.height, picture.width, 3).permute(2, 0, 1)
    room.copy_(planes.flip(2) if mirrored else planes)


class PictureBatch(List[Any]):
    """Samples whose pictures lie in one tensor; a list of them to everybody else."""

    def __init__(self, pictures: Any, labels: List[int]) -> None:
        super().__init__(zip(pictures, labels))
        self.pictures, self.labels = pictures, labels


def collate(samples: List[Any]) -> Any:
    """What PyTorch's own `default_collate` gives, without copying pictures that are one tensor."""
    torch = lazy_imports.torch()
    if isinstance(samples, PictureBatch):
        return [samples.pictures, torch.tensor(samples.labels)]
    return torch.utils.data.default_collate(samples)
